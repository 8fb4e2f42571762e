"""Outbound HTTP: at most one request per send, and an honest account of what happened to it."""

from doonce.http.client import Client, ClientSettings
from doonce.http.egress import PRIVATE_ALLOWED, EgressPolicy
from doonce.http.model import (
    Bounds,
    Gate,
    Go,
    NotSent,
    Replied,
    Request,
    Sent,
    Stage,
    Stop,
    Unanswered,
    boottime_ns,
)

__all__ = [
    "PRIVATE_ALLOWED",
    "Bounds",
    "Client",
    "ClientSettings",
    "EgressPolicy",
    "Gate",
    "Go",
    "NotSent",
    "Replied",
    "Request",
    "Sent",
    "Stage",
    "Stop",
    "Unanswered",
    "boottime_ns",
]
