"""Models of time series and decisions, from Hugging Face's `transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn

from tests.models.entry import ROWS, Entry, normal
from tests.models.hugging_face import Data, add

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "transformers series"


def _series(name: str, kind: str, config: str, options: Mapping[str, Any], data: Data, **more: Any) -> None:
    add(ENTRIES, FAMILY, name, kind, config, options, data, **more)


def _past_and_future() -> dict[str, Tensor]:
    """A series of 12 past values, of which the first 3 serve as lags, and the 4 future values that follow it."""
    return {
        "past_values": normal(ROWS, 12),
        "past_time_features": normal(ROWS, 12, 1, seed=8),
        "past_observed_mask": torch.ones(ROWS, 12),
        "future_values": normal(ROWS, 4, seed=9),
        "future_time_features": normal(ROWS, 4, 1, seed=10),
    }


AHEAD = {
    "prediction_length": 4,
    "context_length": 9,
    "lags_sequence": [1, 2, 3],
    "num_time_features": 1,
    "d_model": 16,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
PATCHTST = {
    "num_input_channels": 2,
    "context_length": 16,
    "patch_length": 4,
    "patch_stride": 4,
    "num_hidden_layers": 2,
    "d_model": 16,
    "ffn_dim": 24,
    "prediction_length": 4,
}
MIXER = {name: value for name, value in PATCHTST.items() if name != "ffn_dim"}


def _channels() -> dict[str, Tensor]:
    return {"past_values": normal(ROWS, 16, 2), "future_values": normal(ROWS, 4, 2, seed=9)}


def _return(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    """The decision transformer's loss: the mean squared difference between the predicted and the taken actions."""
    found = model(**batch).action_preds
    return nn.functional.mse_loss(found, batch["actions"])


def _deeds() -> dict[str, Tensor]:
    return {
        "states": normal(ROWS, 5, 3),
        "actions": normal(ROWS, 5, 2, seed=8).tanh(),
        "rewards": normal(ROWS, 5, 1, seed=9),
        "returns_to_go": normal(ROWS, 5, 1, seed=10),
        "timesteps": torch.arange(5).repeat(ROWS, 1),
        "attention_mask": torch.ones(ROWS, 5, dtype=torch.long),
    }


DECISION = {
    "state_dim": 3,
    "act_dim": 2,
    "hidden_size": 32,
    "max_ep_len": 20,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 32,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}

_series(
    "Time Series Transformer",
    "TimeSeriesTransformerForPrediction",
    "TimeSeriesTransformerConfig",
    {**AHEAD, "distribution_output": "student_t"},
    _past_and_future,
)
_series(
    "Time Series Transformer, normal",
    "TimeSeriesTransformerForPrediction",
    "TimeSeriesTransformerConfig",
    {**AHEAD, "distribution_output": "normal"},
    _past_and_future,
)
_series(
    "Informer",
    "InformerForPrediction",
    "InformerConfig",
    {**AHEAD, "distribution_output": "normal", "sampling_factor": 2},
    _past_and_future,
)
_series(
    "Autoformer",
    "AutoformerForPrediction",
    "AutoformerConfig",
    {**AHEAD, "distribution_output": "normal"},
    _past_and_future,
)
_series("PatchTST", "PatchTSTForPrediction", "PatchTSTConfig", PATCHTST, _channels)
_series("PatchTSMixer", "PatchTSMixerForPrediction", "PatchTSMixerConfig", MIXER, _channels)
_series(
    "Decision Transformer",
    "DecisionTransformerModel",
    "DecisionTransformerConfig",
    DECISION,
    _deeds,
    objective=_return,
)
