"""Where a backend is and how it is reached: what is set beats the environment, what must not be called is refused."""

import pytest
from lorebus.sessions.address import is_refused_host, parse_address
from lorebus.sessions.errors import ProviderSettingsInvalid
from lorebus.sessions.settings import read_settings

ENVIRONMENT = {
    "AGENTMEMORY_BASE_URL": "https://memory.example",
    "AGENTMEMORY_API_KEY": "k-env",
    "AGENTMEMORY_PROJECT": "env",
}


def test_nothing_set_means_the_default_port_of_this_machine() -> None:
    settings = read_settings({}, {})
    assert settings.address == parse_address("http://localhost:3111")
    assert (settings.api_key, settings.project, settings.timeout_seconds) == ("", "ever-works", 30)


def test_the_environment_stands_in() -> None:
    settings = read_settings({}, ENVIRONMENT)
    assert settings.address.authority == "memory.example"
    assert (settings.api_key, settings.project) == ("k-env", "env")


def test_a_set_value_beats_the_environment_and_a_blank_one_does_not() -> None:
    settings = read_settings({"baseUrl": "http://localhost:1", "apiKey": "k", "projectId": " "}, ENVIRONMENT)
    assert (settings.address.port, settings.api_key, settings.project) == (1, "k", "env")


def test_the_key_is_not_shown() -> None:
    assert "k-env" not in repr(read_settings({}, ENVIRONMENT))


@pytest.mark.parametrize("milliseconds", [1_000, 120_000, 1_500.5], ids=str)
def test_a_timeout_within_its_bounds_is_taken(milliseconds: float) -> None:
    assert read_settings({"timeoutMs": milliseconds}, {}).timeout_seconds == milliseconds / 1000


@pytest.mark.parametrize("milliseconds", [999, 120_001, 0, -1, "30000", True, float("nan")], ids=repr)
def test_a_timeout_out_of_bounds_is_refused(milliseconds: object) -> None:
    with pytest.raises(ProviderSettingsInvalid, match="timeoutMs"):
        read_settings({"timeoutMs": milliseconds}, {})


@pytest.mark.parametrize("key", ["a\r\nX-Evil: 1", "schlüssel", "a\x00"], ids=["line break", "umlaut", "nul"])
def test_a_key_that_fits_no_header_is_refused_without_being_told(key: str) -> None:
    with pytest.raises(ProviderSettingsInvalid, match="apiKey") as refused:
        read_settings({"apiKey": key}, {})
    assert key not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "", "memory", "ftp://memory", "file:///etc/passwd", "http://", "http://:80", "http://a:port", "http://a:70000",
        "http://u:p@memory", "http://memory?a=1", "http://memory#a", "http://a b", "http://[::1", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(ProviderSettingsInvalid, match="baseUrl"):
        parse_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254", "http://169.254.0.1:3111", "http://[fe80::1]", "http://[fd00:ec2::254]",
        "http://[::ffff:169.254.169.254]", "http://metadata.google.internal", "http://METADATA.google.internal.",
        "http://100.100.100.200",
    ],
)  # fmt: skip
def test_link_local_and_metadata_addresses_are_refused(url: str) -> None:
    with pytest.raises(ProviderSettingsInvalid, match="refused"):
        parse_address(url)


@pytest.mark.parametrize(
    "url", ["http://localhost:3111", "http://127.0.0.1", "http://10.0.0.8", "http://192.168.1.2", "http://[::1]:3111"]
)
def test_loopback_and_private_addresses_are_taken(url: str) -> None:
    assert parse_address(url).prefix == ""


def test_the_peer_of_a_connection_is_judged_as_its_address_is() -> None:
    assert is_refused_host("fe80::1%eth0")
    assert is_refused_host("::ffff:169.254.169.254")
    assert not is_refused_host("127.0.0.1")


def test_nothing_of_a_url_can_break_out_of_its_line() -> None:
    address = parse_address("http://memory/a b\r\nX: 1/ü")
    assert address.prefix.isascii()
    assert not {" ", "\r", "\n"} & set(address.prefix)
