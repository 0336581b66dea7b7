"""Samples as columns: what goes in comes out, also of a file that was cut off."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_loadgen.run_recording.columns import BLOCK_SAMPLES, MAGIC, ColumnWriter, read
from cephqos_loadgen.run_recording.metrics import PageReader

SAMPLES = st.lists(
    st.dictionaries(
        st.sampled_from(["a", 'b{x="1"}', 'b{x="2"}', "c_total"]),
        st.floats(allow_nan=False),
        max_size=4,
    ),
    max_size=BLOCK_SAMPLES + 5,
)


def write(path: Path, samples: list[dict[str, float]]) -> None:
    writer = ColumnWriter(path)
    for second, values in enumerate(samples):
        writer.add(1_700_000_000 + second, values)
    writer.close()


@given(SAMPLES)
def test_what_goes_in_comes_out_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, samples: list[dict[str, float]]
) -> None:
    path = tmp_path_factory.mktemp("columns") / "m"
    write(path, samples)
    found = read(path).series
    expected: dict[str, list[tuple[float, float]]] = {}
    for second, values in enumerate(samples):
        for name, value in values.items():
            expected.setdefault(name, []).append((1_700_000_000.0 + second, value))
    assert {name: repr(rows) for name, rows in found.items()} == {
        name: repr(rows) for name, rows in expected.items()
    }


def test_a_file_that_was_cut_off_is_good_up_to_its_last_whole_block(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write(path, [{"a": float(n)} for n in range(2 * BLOCK_SAMPLES)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert [value for _, value in read(path).series["a"]] == list(range(BLOCK_SAMPLES))


def test_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(b"not columns")
    with pytest.raises(ValueError, match="cephqos-columns 1"):
        read(path)


def test_constant_series_cost_next_to_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m"
    names = [f'ceph_x{n}{{ceph_daemon="osd.1"}}' for n in range(1000)]
    write(path, [dict.fromkeys(names, 5.0)] * BLOCK_SAMPLES)
    assert path.stat().st_size < 10_000 + len(MAGIC), "60,000 samples"


def test_type_and_help_of_families_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "m"
    writer = ColumnWriter(path)
    page = '# HELP x Some thing, with blanks.\n# TYPE x gauge\nx{a="b c"} 4\nx{a="d"} NaN\n'
    reader = PageReader(writer.describe)
    values = reader.read(page)
    assert values['x{a="b c"}'] == 4
    assert math.isnan(values['x{a="d"}'])
    writer.add(1, values)
    writer.close()
    found = read(path)
    assert found.families == {"x": ("gauge", "Some thing, with blanks.")}
    assert found.series['x{a="b c"}'] == [(1, 4)]
