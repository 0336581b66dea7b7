"""What a case shows at another scrape interval is what it was made to show."""

from tests.rules.intervals import samples, seen_every


def test_promtools_notation_is_read_sample_by_sample() -> None:
    assert samples("1 2x2 _x2 0+15x2 _ 1e+06-5e+05x1") == [
        *(1, 2, 2, 2),
        *(None, None),
        *(0, 15, 30),
        None,
        *(1e6, 5e5),
    ]


def test_fewer_and_more_scrapes_see_the_same_line() -> None:
    assert seen_every(30, "0+15x4") == "0 30 60"
    assert seen_every(5, "0+15x2") == "0 5 10 15 20 25 30"
    assert seen_every(5, "3 _ 3") == "3 _ _ _ _ _ 3"
