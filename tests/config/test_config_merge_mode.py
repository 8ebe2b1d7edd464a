import pytest

from hudi_fast.config.merge_mode import infer_merge, translate_merge
from hudi_fast.errors import ConfigError

MODEL = "org.apache.hudi.common.model."
DEFAULT, OVERWRITE = MODEL + "DefaultHoodieRecordPayload", MODEL + "OverwriteWithLatestAvroPayload"
EVENT, COMMIT = "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"
EVENT_ID, COMMIT_ID = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"
PAYLOAD_ID, OTHER_ID = "00000000-0000-0000-0000-000000000000", "1897ef5f-18bc-4557-939c-9d6a8afd1519"


@pytest.mark.parametrize(
    ("payload", "strategy", "ordering", "expected"),
    [
        (None, None, (), (COMMIT, OVERWRITE, COMMIT_ID)),
        (None, None, ("ts",), (EVENT, DEFAULT, EVENT_ID)),
        (DEFAULT, None, (), (EVENT, DEFAULT, EVENT_ID)),
        (MODEL + "EventTimeAvroPayload", None, (), (EVENT, MODEL + "EventTimeAvroPayload", EVENT_ID)),
        (OVERWRITE, None, ("ts",), (COMMIT, OVERWRITE, COMMIT_ID)),
        ("com.example.Mine", None, ("ts",), ("CUSTOM", "com.example.Mine", PAYLOAD_ID)),
        (None, COMMIT_ID, ("ts",), (COMMIT, OVERWRITE, COMMIT_ID)),
        (None, EVENT_ID, (), (EVENT, DEFAULT, EVENT_ID)),
        (None, OTHER_ID, (), ("CUSTOM", DEFAULT, OTHER_ID)),
        (OVERWRITE, EVENT_ID, ("ts",), (COMMIT, OVERWRITE, COMMIT_ID)),
    ],
)
def test_old_tables_are_inferred(payload, strategy, ordering, expected):
    found = infer_merge(6, mode=None, payload_class=payload, strategy_id=strategy, ordering_fields=ordering)
    assert (found.mode, found.payload_class, found.strategy_id) == expected


def test_from_version_8_on_the_mode_is_taken_at_its_word_and_before_it_is_not():
    arguments = {"mode": COMMIT, "payload_class": DEFAULT, "strategy_id": EVENT_ID, "ordering_fields": ("ts",)}
    assert infer_merge(8, **arguments).mode == COMMIT
    assert infer_merge(9, **arguments).mode == COMMIT
    assert infer_merge(6, **arguments).mode == EVENT


def test_version_9_infers_nothing_beside_the_mode():
    found = infer_merge(9, mode=EVENT, payload_class=None, strategy_id=None, ordering_fields=("ts",))
    assert (found.payload_class, found.strategy_id) == (None, None)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_strategy_and_mode_that_agree_are_fine(version):
    found = translate_merge(version, mode=COMMIT, payload_class=None, strategy_id=COMMIT_ID, ordering_fields=())
    assert found.mode == COMMIT


@pytest.mark.parametrize(
    ("mode", "payload", "strategy"),
    [
        (EVENT, OVERWRITE, None),
        (None, OVERWRITE, EVENT_ID),
        (EVENT, None, COMMIT_ID),
        (EVENT, "com.example.Mine", None),
    ],
)
def test_contradictions_are_refused(mode, payload, strategy):
    with pytest.raises(ConfigError, match="contradicts"):
        translate_merge(8, mode=mode, payload_class=payload, strategy_id=strategy, ordering_fields=("ts",))


def test_a_custom_merger_with_a_payload_keeps_its_strategy_on_version_8():
    found = translate_merge(
        8, mode="CUSTOM", payload_class="com.example.Mine", strategy_id=OTHER_ID, ordering_fields=("ts",)
    )
    assert (found.mode, found.payload_class, found.strategy_id) == ("CUSTOM", "com.example.Mine", OTHER_ID)
