"""Modules that follow from the declarations of scenarios and results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import apus
from apus import _native
from tools.generate import Generator

PACKAGE = Path(apus.__file__).parent
MODULES = Generator(json.loads(_native.declarations())).modules()


def formatted(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command = [ruff, "format", "--stdin-filename", PACKAGE / "generated.py", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("name", MODULES)
def test_a_generated_module_is_that_of_the_declarations(name: str) -> None:
    file = PACKAGE / f"{name}.py"
    text = formatted(MODULES[name])
    if "APUS_WRITE_DOCS" in os.environ:
        file.write_text(text)
    remedy = "run: APUS_WRITE_DOCS=1 tools/test-python tests/test_generated.py"
    assert file.read_text() == text, remedy
