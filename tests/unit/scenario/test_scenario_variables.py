"""Values in their places, and errors that name file, line, key, what was found, what is allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cephqos_base.errors import ConfigError
from cephqos_loadgen.scenario.variables import ScenarioValue, load, variable_from_text


def value(text: str, **variables: str) -> ScenarioValue:
    nodes = {name: variable_from_text(text) for name, text in variables.items()}
    return load(text, "s.yaml").having(nodes)


def test_an_error_names_file_line_key_found_and_allowed() -> None:
    document = value("a: 1\nfio:\n  depth: many\n")
    with pytest.raises(ConfigError) as error:
        document.entries()["fio"].entries()["depth"].integer(1, 64)
    assert str(error.value) == (
        "s.yaml:3: fio.depth: found 'many'; allowed: a whole number from 1 to 64"
    )
    assert error.value.exit_status == 2


def test_an_unknown_key_is_refused_and_the_nearest_one_is_named() -> None:
    with pytest.raises(match=r"s.yaml:2: dephts: found an unknown key; allowed: dep"):
        value("rw: read\ndephts: 3\n").table(("rw", "depth"))


def test_a_missing_key_is_named() -> None:
    with pytest.raises(match="rw: found nothing; allowed: a value"):
        value("bs: 4K").table(("rw", "bs"), ("rw",))


def test_a_key_given_twice_is_refused_where_it_is_given_again() -> None:
    with pytest.raises(match=r"s.yaml:2: a: found the key twice"):
        value("a: 1\na: 2\n").entries()


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\t- x", ""])
def test_what_is_no_yaml_is_said_in_one_line(text: str) -> None:
    with pytest.raises(match=r"^s.yaml:\d+: found ") as error:
        load(text, "s.yaml")
    assert "\n" not in str(error.value)


def test_a_variable_alone_may_be_a_list_and_inside_text_a_word() -> None:
    document = value("depths: ${d}\nname: pool-${n}\n", d="[1, 8]", n="a").entries()
    assert [item.integer() for item in document["depths"].items()] == [1, 8]
    assert document["name"].text() == "pool-a"


def test_a_variable_that_is_not_set_is_named_with_those_that_are() -> None:
    with pytest.raises(match=r"\$\{size\}; allowed: a variable that is set \(n\)"):
        value("a: ${size}", n="1").entries()["a"].text()


def test_variables_that_need_each_other_are_refused() -> None:
    with pytest.raises(match="variables that need each other"):
        value("a: ${x}", x="${y}", y="${x}").entries()["a"].text()


def test_a_list_variable_inside_text_is_refused() -> None:
    with pytest.raises(match="which is a list"):
        value("a: pre-${x}", x="[1, 2]").entries()["a"].text()


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("4K", 4096), ("1M", 1 << 20), ("10GiB", 10 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert value(text).size() == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("200ms", 0.2), ("2h", 7200)]
)
def test_times(text: str, seconds: float) -> None:
    assert value(text).seconds() == pytest.approx(seconds)


@given(st.text(alphabet="abc[]{}:,-&*!|>'\"%@`#?$ \n0", max_size=60))
def test_any_text_gives_a_value_or_a_scenario_error(text: str) -> None:
    """No other exception, whatever is in the file."""
    try:
        for item in load(text, "s.yaml").items():
            item.text()
    except ConfigError:
        pass
