"""Timelines of whom and what commands are about: links of records, and principals with their generations."""

from __future__ import annotations

from typing import Any

from doonce.app.operate.model import Moment, Timeline


def link_timeline(row: dict[str, Any]) -> Timeline:
    """What an operator is shown of a link."""
    link_id = row["id"]
    moments = [Moment(at_us=row["created_at"], id=link_id, event="link adopted", detail=row["remote_id"])]
    if row["version"] > 1:
        event = f"link {row['state']}, version {row['version']}"
        moments.append(Moment(at_us=row["updated_at"], id=link_id, event=event))
    return Timeline(
        asked=link_id,
        kind="link",
        id=link_id,
        state=row["state"],
        facts={
            "scope": f"{row['org']} / {row['installation']}",
            "kind": row["kind"],
            "record": row["local_ref"],
            "remote id": row["remote_id"],
            "principal": f"{row['principal_id']} generation {row['generation']}",
        },
        moments=tuple(moments),
    )


def principal_timeline(row: dict[str, Any], generations: list[dict[str, Any]]) -> Timeline:
    """What an operator is shown of a principal."""
    moments: list[Moment] = []
    for one in generations:
        number = f"generation {one['generation']}"
        moments.append(Moment(at_us=one["created_at"], id=one["id"], event=f"{number} began"))
        if one["ended_at"] is not None:
            ended = Moment(
                at_us=one["ended_at"], id=one["id"], event=f"{number} ended", detail=one["reason"] or ""
            )
            moments.append(ended)
    return Timeline(
        asked=row["id"],
        kind="principal",
        id=row["id"],
        state=row["state"],
        facts={
            "scope": f"{row['org']} / {row['installation']}",
            "name": row["name"],
            "pack": row["pack"],
            "generation": str(row["current_generation"]),
        },
        moments=tuple(sorted(moments, key=lambda moment: moment.at_us)),
    )
