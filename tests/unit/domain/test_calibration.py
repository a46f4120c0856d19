import numpy as np
import pytest

from libs.common.domain.calibration import SD_MIN, WORK_TEXTS, Background, measure_background, z_of_setting


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


def test_a_query_has_to_stand_out_from_the_kind_of_texts_that_it_is_nearest_to():
    work, everyday = np.array([1, 0], dtype=np.float32), np.array([0, 1], dtype=np.float32)
    background = np.array([work] * WORK_TEXTS + [everyday] * 9)
    about_work, about_people = (np.array(query, dtype=np.float32) for query in ((0.8, 0.6), (0.6, 0.8)))
    assert measure_background(about_work, background).mean == pytest.approx(0.8)
    assert measure_background(about_people, background).mean == pytest.approx(0.8)
