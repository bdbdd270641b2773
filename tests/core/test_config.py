"""Configuration layers: order, types, and all errors at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from rstar2cli.core import config
from rstar2cli.core.errors import InputMissing, UsageError


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.5
    mode: Literal["fast", "slow"] = "fast"
    cap: int | None = None

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise ValueError(f"rate = {self.rate} must not be negative")


@dataclass(frozen=True, kw_only=True)
class Outer:
    steps: int = 3
    name: str = "x"
    on: bool = False
    items: tuple[str, ...] = ()
    inner: Inner = field(default_factory=Inner)


def test_defaults_alone():
    assert config.resolve(Outer, []) == Outer()


def test_later_layers_win_and_texts_take_the_type_of_their_field(tmp_path):
    toml = tmp_path / "run.toml"
    toml.write_text('steps = 5\nname = "a"\nitems = ["p", "q"]\n[inner]\nrate = 1\n')
    layers = [
        config.toml_layer(str(toml)),
        config.environment_layer({"steps": "6", "inner.mode": "slow"}),
        config.set_layer(["steps=7", "on=true", "inner.cap=9"]),
    ]
    got = config.resolve(Outer, layers)
    assert got == Outer(steps=7, name="a", on=True, items=("p", "q"), inner=Inner(rate=1.0, mode="slow", cap=9))


def test_null_and_lists_from_texts():
    got = config.resolve(Outer, [config.set_layer(["inner.cap=none", "items=a,b"])])
    assert got.inner.cap is None
    assert got.items == ("a", "b")


def test_every_error_is_reported_with_the_nearest_name():
    layers = [config.set_layer(["stepps=1", "inner.mod=fast", "on=maybe", "inner.mode=quick", "steps=1.5"])]
    with pytest.raises(UsageError) as caught:
        config.resolve(Outer, layers)
    text = caught.value.message
    assert "unknown key 'stepps'; did you mean 'steps'?" in text
    assert "unknown key 'inner.mod'; did you mean 'inner.mode'?" in text
    assert "on = 'maybe': expected true or false" in text
    assert "choose from fast, slow" in text
    assert "steps = '1.5': expected a whole number" in text


def test_a_failed_check_names_its_section():
    with pytest.raises(UsageError, match=r"inner: rate = -1.0 must not be negative"):
        config.resolve(Outer, [config.set_layer(["inner.rate=-1"])])


def test_a_whole_number_is_not_rounded_and_a_bool_is_no_number(tmp_path):
    toml = tmp_path / "run.toml"
    toml.write_text("steps = 2.7\n[inner]\nrate = true\n")
    with pytest.raises(UsageError) as caught:
        config.resolve(Outer, [config.toml_layer(str(toml))])
    assert "steps = 2.7" in caught.value.message
    assert "inner.rate = True" in caught.value.message


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(InputMissing, match="can't read configuration"):
        config.toml_layer(str(tmp_path / "none.toml"))
    bad = tmp_path / "bad.toml"
    bad.write_text("steps = = 1")
    with pytest.raises(UsageError, match=r"bad.toml: not valid TOML.*line 1"):
        config.toml_layer(str(bad))


def test_set_without_equals():
    with pytest.raises(UsageError, match="key=value"):
        config.set_layer(["steps"])


def test_what_is_resolved_can_be_run_again():
    got = config.resolve(Outer, [config.set_layer(["inner.rate=0.25", "items=a"])])
    plain = config.to_dict(got)
    flat = {"steps": plain["steps"], "items": plain["items"], "inner.rate": plain["inner"]["rate"]}
    assert config.resolve(Outer, [config.Layer(origin="file", values=flat)]) == got
