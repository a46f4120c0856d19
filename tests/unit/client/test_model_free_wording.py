"""What steps say of themselves in the notes that no model words."""

from lorebus.writers import BRANCHES_NAMED_MAX, render_merge, render_shell_step


def test_a_merge_names_how_many_branches_which_and_into_what():
    assert render_merge(["feature/a", "feature/b"], "main") == (
        "Resolved merge conflicts of 2 branches with main: merged feature/a, feature/b."
    )
    assert render_merge(["feature/a"], "main") == "Resolved merge conflicts of 1 branch with main: merged feature/a."


def test_a_merge_of_very_many_branches_names_the_first():
    said = render_merge([f"b{number}" for number in range(BRANCHES_NAMED_MAX + 2)], "main")
    assert said.startswith(f"Resolved merge conflicts of {BRANCHES_NAMED_MAX + 2} branches with main: merged b0, b1,")
    assert said.endswith(f"b{BRANCHES_NAMED_MAX - 1} and 2 more.")


def test_a_shell_step_names_how_many_files_the_branch_and_the_command():
    assert render_shell_step(3, "feature/a", "make fmt") == (
        "A shell step changed 3 files and pushed them to feature/a: make fmt"
    )
    assert render_shell_step(1, "main", "make") == "A shell step changed 1 file and pushed them to main: make"
