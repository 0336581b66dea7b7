"""What the request's headers ask for: format, compression, deadline."""

import pytest

from cephqos_exporter.web.negotiation import (
    accepts_gzip,
    scrape_seconds,
    wants_openmetrics,
)

from .test_web_server import PROMETHEUS_3


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        (PROMETHEUS_3, True),
        ("application/openmetrics-text; version=1.0.0", True),
        ("text/plain;version=0.0.4;q=1,application/openmetrics-text;q=0.5", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=x", False),
    ],
)
def test_the_format_is_the_one_preferred(accept: str, openmetrics: bool) -> None:
    assert wants_openmetrics(accept) is openmetrics


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("br", False),
    ],
)
def test_gzip_is_used_where_it_is_accepted(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 10),
        ("8", 7.5),
        ("1e9", 59.5),
        ("1e308", 59.5),
        ("0.6", 0.3),
        ("-1", 10),
        ("nan", 10),
        ("inf", 10),
        ("x", 10),
    ],
)
def test_what_prometheus_sends_less_the_offset_is_the_time_there_is(
    header: str | None, seconds: float
) -> None:
    allowed = scrape_seconds(header, offset=0.5, otherwise=10)
    assert allowed == pytest.approx(seconds)


@pytest.mark.parametrize("header", ["0.01", "0.3", "1e-300"])
def test_a_time_that_no_daemon_could_keep_is_made_longer(header: str) -> None:
    assert scrape_seconds(header, offset=0.5, otherwise=10) == 0.2
