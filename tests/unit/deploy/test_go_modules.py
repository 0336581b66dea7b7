"""What programs built from Go modules hold is listed, with the sums of go.sum and licences."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from .programs import DEPLOY, program

BILL: Final = json.loads((DEPLOY.parent / "docs" / "sbom.cdx.json").read_text())
COMPONENTS: Final = {one["bom-ref"]: one for one in BILL["components"]}
FOLDERS: Final = sorted(file.parent for file in (DEPLOY / "tools").glob("*/go.mod"))
go_modules = program("tools/go_modules.py")


def holds(name: str) -> list[Any]:
    """The components that a program can be made of."""
    [refs] = [one["dependsOn"] for one in BILL["dependencies"] if one["ref"] == name]
    return [COMPONENTS[ref] for ref in refs]


def replaced(text: str) -> dict[str, list[str]]:
    found = [line.removeprefix("replace").split() for line in text.splitlines() if " => " in line]
    return {words[0]: words[-2:] for words in found}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_module_that_is_required_is_listed_with_its_sum_and_a_licence(folder: Path) -> None:
    text = (folder / "go.mod").read_text()
    required = re.findall(r"^(?:\t|require )([^\s(]+) (v\S+)", text.split("\nreplace")[0], re.M)
    assert len(required) > 5
    instead = replaced(text)
    sums = {tuple(line.split()) for line in (folder / "go.sum").read_text().splitlines()}
    names = [one.tool.name for one in go_modules.programs() if one.tool.module == folder.name]
    assert names
    for name in names:
        listed = {one["name"]: one for one in holds(name)}
        assert len(listed) == len(required)
        for path, version in required:
            path, version = instead.get(path, (path, version))
            one = listed[path]
            assert one["version"] == version
            assert (path, version, one["properties"][0]["value"]) in sums
            assert one["licenses"][0]["expression"]


def test_a_program_has_the_version_and_the_licence_of_its_module() -> None:
    found = {one.tool.name: one for one in go_modules.programs()}
    assert (found["loki"].main.path, found["loki"].licence) == (
        "github.com/grafana/loki/v3",
        "AGPL-3.0-only",
    )
    assert found["loki"].version == found["logcli"].version == found["loki"].main.version
    page = (DEPLOY / "tools" / "README.md").read_text()
    for one in found.values():
        assert one.version.removeprefix("v") in page, one.tool.name
    assert set(found) == {one["name"] for one in COMPONENTS.values() if one["type"] != "library"}


def test_a_module_that_only_tests_need_is_excluded_and_one_of_loki_too_is_not() -> None:
    scopes = {one["name"]: one["scope"] for one in holds("helm")}
    assert scopes["helm.sh/helm/v3"] == "excluded"
    assert {one["scope"] for one in holds("loki")} == {"optional"}
    assert "optional" in scopes.values()


def test_a_version_whose_licence_nobody_looked_up_is_an_error_that_says_what_to_run() -> None:
    with pytest.raises(KeyError, match=r"has no \S+ v\S+: python \S*go_modules\.py"):
        list(go_modules.pinned(FOLDERS[0], {}))


def test_nothing_is_left_of_versions_that_are_no_longer_used() -> None:
    used = {(part.path, part.version) for one in go_modules.programs() for part in one.modules}
    assert set(go_modules._known_licences()) == used


@pytest.mark.parametrize(
    ("text", "licences"),
    [
        ("Apache License\n  Version 2.0, January 2004", {"Apache-2.0"}),
        ("Licensed under the Apache License, Version 2.0 (the ...", {"Apache-2.0"}),
        ("Permission is hereby granted, free of charge,\nto any person obtaining a copy", {"MIT"}),
        (
            "Redistribution and use in source and binary forms ... Neither the name of",
            {"BSD-3-Clause"},
        ),
        ("Redistribution and use in source\n * and binary forms, with", {"BSD-2-Clause"}),
        ("Mozilla Public License Version 2.0 ... GNU Affero General Public License", {"MPL-2.0"}),
        ("GNU AFFERO GENERAL PUBLIC LICENSE\n Version 3, 19", {"AGPL-3.0-only"}),
        ("GNU LESSER GENERAL PUBLIC LICENSE\n Version 3, 29", {"LGPL-3.0-only"}),
        ("All rights reserved.", set()),
    ],
)
def test_a_licence_is_known_by_its_words(text: str, licences: set[str]) -> None:
    assert go_modules.licences_in(text) == licences


def test_a_module_with_two_licences_has_both_and_one_with_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text("Apache License, Version 2.0")
    (tmp_path / "license.go").write_text("// Redistribution and use in source and binary forms")
    assert go_modules.licence_of(tmp_path) == "Apache-2.0"
    (tmp_path / "LICENSE.libyaml").write_text(
        "Permission is hereby granted, free of charge, to any person obtaining a copy"
    )
    assert go_modules.licence_of(tmp_path) == "Apache-2.0 AND MIT"
    for file in tmp_path.glob("LICENSE*"):
        file.unlink()
    with pytest.raises(ValueError, match="no licence file"):
        go_modules.licence_of(tmp_path)
