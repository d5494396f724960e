"""`assay submit` of code that cannot be captured ends with exit code 2, one line per reason, and the code's
traceback.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assay import posting
from assay.options import context_of
from protocol.errors import ExitCode
from protocol.node.exits import reported
from tests.unit.assay.test_commands_start import run
from tests.unit.assay.test_description import DIGITS

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn
from protocol.capture import capture

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 3)
        self.spare = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(before(x))

def objective(model, batch):
    return F.cross_entropy(model(batch["x"]), batch["y"])

def build(steps):
    torch.manual_seed(0)
    model = Model()
    data = {"x": torch.randn(50, 8), "y": torch.randint(0, 3, (50,))}
    return capture(model, objective, torch.optim.AdamW(model.parameters()), data, batch_size=6, steps=steps)

def before(x):
"""


def submitted(folder: Path, source: str) -> int:
    """The exit code of a dry run in this process."""
    (folder / "task.toml").write_text(DIGITS)
    (folder / "digits.py").write_text(source)
    try:
        with reported():
            context = context_of("submit", folder / "home", False, rpc="http://127.0.0.1:1")
            posting.dry_run(context, folder / "task.toml", posting.Choices())
    except SystemExit as ended:
        return int(str(ended.code))
    return ExitCode.FINE


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        (
            SOURCE + "    return torch.i0(x) + torch.special.i1(x) if x.sum() > 0 else x\n",
            [
                "error: this step cannot be captured, 3 reasons:",
                "  - a decision or a shape depends on the data",
                "  - aten.i0.default: not supported",
                "  - aten.special_i1.default: not supported",
            ],
        ),
        (
            SOURCE + "    return {}['model']\n",
            [
                "error: this step cannot be captured:",
                "  - the step raises KeyError",
                "      Traceback (most recent call last):",
                "          return {}['model']",
                "      KeyError: 'model'",
            ],
        ),
        (
            SOURCE + "    return x[:, :4]\n",
            [
                "  - the step raises RuntimeError",
                "      RuntimeError: mat1 and mat2 shapes cannot be multiplied (6x4 and 8x3)",
            ],
        ),
        (
            SOURCE.replace("AdamW(model.parameters())", "LBFGS(model.parameters())") + "    return x\n",
            [
                "  - the step of this LBFGS raises TypeError: LBFGS.step() missing 1 required positional "
                "argument: 'closure'",
                "      use one whose step() takes dense gradients alone, and asks for no second loss",
            ],
        ),
        ("import no_such_package", ["ModuleNotFoundError: No module named 'no_such_package'"]),
        ("def build(steps)\n    return 1", ["    def build(steps)", "SyntaxError: expected ':'"]),
        (
            "raise RuntimeError('no data here')",
            ["Traceback (most recent call last):", "RuntimeError: no data here"],
        ),
        ("import sys\nsys.exit(3)", ["SystemExit: 3"]),
    ],
    ids=["operations", "own error", "shape", "optimiser", "import", "syntax", "module level", "exit"],
)
def test_the_submitters_errors_end_with_exit_code_2(
    tmp_path: Path, source: str, lines: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert submitted(tmp_path, source) == ExitCode.HOPELESS
    output, errors = capfd.readouterr()
    assert output == ""
    assert errors.startswith("error: ")
    assert set(lines) <= set(errors.splitlines()), errors
    for words in ("internal error", "restart", "site-packages/torch", "fake_tensor", "details in"):
        assert words not in errors


def test_notes_of_the_capture_are_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert submitted(tmp_path, SOURCE + "    return x\n") == ExitCode.FINE
    output, errors = capfd.readouterr()
    assert errors == ""
    assert "note: the loss does not reach spare.weight, spare.bias: left unchanged, as torch leaves them" in (
        output.splitlines()
    )


def test_the_command_itself_ends_so(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(DIGITS)
    (tmp_path / "digits.py").write_text(SOURCE + "    return x[:, :4]\n")
    arguments = ("submit", str(tmp_path / "task.toml"), "--dry-run")
    done = run("import assay.cli as cli; cli.main()", *arguments, home=tmp_path / "home")
    assert (done.returncode, done.stdout) == (ExitCode.HOPELESS, "")
    assert done.stderr.startswith("error: this step cannot be captured:\n  - the step raises RuntimeError\n")
    assert "fake_tensor" not in done.stderr
