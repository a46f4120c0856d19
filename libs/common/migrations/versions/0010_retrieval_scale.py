"""No embedding model without its calibration: as many background vectors as it says, each of the model's length."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_CALIBRATED = (
    "octet_length(background) > 0 and octet_length(background)"
    " = 4 * dimensions * coalesce((calibration ->> 'texts')::integer, 0)"
)


def upgrade() -> None:
    op.create_check_constraint(op.f("embedding_models_calibrated_check"), "embedding_models", _CALIBRATED)


def downgrade() -> None:
    op.drop_constraint(op.f("embedding_models_calibrated_check"), "embedding_models")
