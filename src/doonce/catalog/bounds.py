"""Bounds of what a pack and a binding may ask for, each with its reason."""

from typing import Final

SECOND_US: Final = 1_000_000

CALL_BUDGET_US_MAX: Final = 120 * SECOND_US
"""One call: a lease is extended by it, and a crashed worker's target waits that long."""

SEND_WINDOW_US_MAX: Final = 30 * SECOND_US
"""From mark to first byte; the longer it is, the later a verdict of no effect may come (PROTOCOL H3)."""

REPLAY_MARGIN_US: Final = 30 * SECOND_US
"""Taken off every replay window: clocks of two companies, and a request that lingers on its way (D7)."""

RETRY_AFTER_US_MAX: Final = 24 * 3_600 * SECOND_US
"""The longest wait that a provider may ask for; daily quotas reset within it."""

SUMMARY_BYTES_MAX: Final = 255
"""A line for people."""

OPERATIONS_MAX: Final = 500
"""Operations of one pack."""

RESULT_VALUE_CHARACTERS_MAX: Final = 4_096
"""One extracted text; a longer one is left out of the result."""

RECEIPT_VALUE_CHARACTERS_MAX: Final = 255
"""One safe header of an answer; a longer one is cut."""

HEADER_VALUE_BYTES_MAX: Final = 1_024
"""One declared or derived request header."""

RETRY_AFTER_SILENT_US_MAX: Final = 3_600 * SECOND_US
"""The longest wait that a provider may ask for where the pack is silent and a repetition is harmless."""

WEBHOOKS_MAX: Final = 100
"""Webhooks of one pack."""

WEBHOOK_BODY_BYTES_MAX: Final = 4_194_304
"""One delivery; providers that batch stop at 1 to 3 MiB, and every byte is hashed before anybody is believed."""

RESPONSE_DEADLINE_US_MAX: Final = 60 * SECOND_US
"""How long a provider waits for our answer; the longest known is 30 s."""

WEBHOOK_BODY_BYTES_DEFAULT: Final = 262_144
"""One delivery where the pack is silent; the notification of one change has a few KiB."""

STAMP_TOLERANCE_US_MAX: Final = 24 * 3_600 * SECOND_US
"""How old a signed delivery may be; beyond a day a timestamp keeps no replay out."""

OVERLAP_US_MAX: Final = 7 * 24 * 3_600 * SECOND_US
"""How much wider than a loss its window is read; a week covers whatever a provider is late by."""

PAGES_MAX: Final = 10_000
"""Pages of one read of a window; a list of a hundred events a page then holds a million."""

PAGES_DEFAULT: Final = 1_000
"""The same where the pack is silent."""
