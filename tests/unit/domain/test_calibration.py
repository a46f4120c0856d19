import numpy as np
import pytest

from libs.common.domain.calibration import SD_MIN, Background, measure_background, z_of_setting


def test_the_default_setting_is_z_three():
    assert z_of_setting(0.7) == pytest.approx(3)


def test_settings_keep_their_order():
    assert z_of_setting(0) == 0 < z_of_setting(0.6) < z_of_setting(0.7) < z_of_setting(0.85) < z_of_setting(1)


def test_z_says_how_far_a_cosine_stands_out():
    assert Background(mean=0.2, sd=0.1).z(0.5) == pytest.approx(3)


def test_the_background_is_measured_from_cosines():
    vectors = np.eye(2, dtype=np.float32)
    measured = measure_background(np.array([1.0, 0.0], dtype=np.float32), vectors)
    assert (measured.mean, measured.sd) == (0.5, 0.5)


def test_a_query_without_direction_gives_a_finite_z():
    measured = measure_background(np.zeros(2, dtype=np.float32), np.eye(2, dtype=np.float32))
    assert measured.z(0.0) == 0.0
    assert measured.z(0.1) == pytest.approx(0.1 / SD_MIN)
