"""The structs that cross between an application and the service, and nothing else.

Whatever is decoded here is whole, bounded and strict: no unknown field, no duplicate key, no text that an
engine could not store. What is constructed here obeys the same checks, so a sender learns of its fault first.
"""

from doonce.wire.codec import (
    ACCEPT_BODY_BYTES_MAX,
    EVENT_BODY_BYTES_MAX,
    NOTICE_BODY_BYTES_MAX,
    RECEIPT_BODY_BYTES_MAX,
    REJECT_BODY_BYTES_MAX,
    decode,
    encode,
)
from doonce.wire.completions import (
    CompletionNotice,
    CompletionOutcome,
    CompletionReceipt,
    ReceiptState,
    seal_notice,
    verify_notice,
)
from doonce.wire.events import (
    EventNotice,
    EventObject,
    EventObjectRead,
    EventReceipt,
    EventState,
    seal_event,
    verify_event,
)
from doonce.wire.faults import (
    ErrorBody,
    ErrorDocument,
    error_document,
    raised_from,
    status_of,
)
from doonce.wire.handoffs import (
    AcceptBatch,
    AcceptRequest,
    AcceptResults,
    Admission,
    AdmissionState,
    HandoffScope,
    Refused,
    RejectBody,
    RejectRequest,
    fitted,
    refused_from,
)

__all__ = [
    "ACCEPT_BODY_BYTES_MAX",
    "EVENT_BODY_BYTES_MAX",
    "NOTICE_BODY_BYTES_MAX",
    "RECEIPT_BODY_BYTES_MAX",
    "REJECT_BODY_BYTES_MAX",
    "AcceptBatch",
    "AcceptRequest",
    "AcceptResults",
    "Admission",
    "AdmissionState",
    "CompletionNotice",
    "CompletionOutcome",
    "CompletionReceipt",
    "ErrorBody",
    "ErrorDocument",
    "EventNotice",
    "EventObject",
    "EventObjectRead",
    "EventReceipt",
    "EventState",
    "HandoffScope",
    "ReceiptState",
    "Refused",
    "RejectBody",
    "RejectRequest",
    "decode",
    "encode",
    "error_document",
    "fitted",
    "raised_from",
    "refused_from",
    "seal_event",
    "seal_notice",
    "status_of",
    "verify_event",
    "verify_notice",
]
