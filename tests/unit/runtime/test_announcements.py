"""Log messages that are shown only once."""

import logging

from unified.runtime.announcements import log_once


def test_a_note_is_logged_once(caplog):
    logger = logging.getLogger("unified.a_test_of_notes")
    log_once.cache_clear()
    with caplog.at_level(logging.INFO, logger.name):
        for note in ("one", "two", "one"):
            log_once(logger, note)
        assert [(record.levelno, record.message) for record in caplog.records] == [(20, "one"), (20, "two")]
        log_once.cache_clear()
        log_once(logger, "one")
    assert len(caplog.records) == 3
