-- Every statement on sqlite. Written by `make snapshots`; review it like code.

-- catalog.installations
SELECT DISTINCT view_publication.org, view_publication.installation
FROM view_publication
ORDER BY view_publication.org, view_publication.installation;
-- no parameters

-- catalog.latest
SELECT view_publication.org, view_publication.installation, view_publication.capability, view_publication.sequence, view_publication.digest, view_publication.published_at
FROM view_publication
JOIN (SELECT json_extract(scopes_json.value, '$[0]') AS org, json_extract(scopes_json.value, '$[1]') AS installation, json_extract(scopes_json.value, '$[2]') AS capability
FROM json_each(?) AS scopes_json) AS scopes ON view_publication.org = scopes.org AND view_publication.installation = scopes.installation AND view_publication.capability = scopes.capability AND view_publication.sequence = (SELECT max(view_publication.sequence) AS max_1
FROM view_publication
WHERE view_publication.org = scopes.org AND view_publication.installation = scopes.installation AND view_publication.capability = scopes.capability);
-- scopes (rows as JSON)

-- catalog.load
SELECT binding_view.document
FROM binding_view
WHERE binding_view.digest = ?;
-- address

-- catalog.published
SELECT DISTINCT view_publication.org, view_publication.installation, view_publication.capability, view_publication.digest
FROM view_publication
JOIN (SELECT json_extract(pairs_json.value, '$[0]') AS org, json_extract(pairs_json.value, '$[1]') AS installation, json_extract(pairs_json.value, '$[2]') AS capability, json_extract(pairs_json.value, '$[3]') AS digest
FROM json_each(?) AS pairs_json) AS pairs ON view_publication.org = pairs.org AND view_publication.installation = pairs.installation AND view_publication.capability = pairs.capability AND view_publication.digest = pairs.digest;
-- pairs (rows as JSON)

-- catalog.scopes
SELECT DISTINCT view_publication.org, view_publication.installation, view_publication.capability
FROM view_publication
ORDER BY view_publication.org, view_publication.installation, view_publication.capability;
-- no parameters

-- catch_ups.attach
UPDATE ingress_gap
SET catch_up_id=?
WHERE ingress_gap.org = ? AND ingress_gap.installation = ? AND ingress_gap.capability = ? AND ingress_gap.webhook = ? AND ingress_gap.sequence = ?;
-- new_catch_up, the_org, the_installation, the_capability, the_webhook, the_sequence

-- catch_ups.gaps_of_route
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.org = ? AND ingress_gap.installation = ? AND ingress_gap.capability = ? AND ingress_gap.webhook = ?
ORDER BY ingress_gap.sequence;
-- the_org, the_installation, the_capability, the_webhook

-- catch_ups.live_work
SELECT work_item.id
FROM work_item
WHERE work_item.subject_id = ? AND (work_item.state NOT IN (?, ?, ?, ?));
-- subject, 'cancelled', 'dead', 'skipped', 'succeeded'

-- catch_ups.lock
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.id = ?;
-- the_id

-- catch_ups.move
UPDATE ingress_catch_up
SET covered_since=?, covered_until=?, passes=?, from_at=?, since_at=?, until_at=?, losses=?, page_id=?, page_number=?, page_cursor=?, pages=?, items=?, events=?, updated_at=?
WHERE ingress_catch_up.id = ?;
-- new_covered_since, new_covered_until, new_passes, new_from_at, new_since_at, new_until_at, new_losses, new_page_id, new_page_number, new_page_cursor, new_pages, new_items, new_events, now_us, the_id

-- catch_ups.of_pages
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.page_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- catch_ups.read_with
SELECT ingress_page.id
FROM ingress_page
WHERE ingress_page.catch_up_id = ? AND ingress_page.pass = ? AND ingress_page.cursor_digest = ?;
-- the_id, the_pass, the_cursor

-- catch_ups.unattended
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.closed_at IS NULL AND ingress_gap.catch_up_id IS NULL AND (ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence) > (?, ?, ?, ?, ?)
ORDER BY ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence
LIMIT ? OFFSET ?;
-- after_org, after_installation, after_capability, after_webhook, after_sequence, rows, 0

-- catching_up.gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
JOIN (SELECT json_extract(wanted_json.value, '$[0]') AS org, json_extract(wanted_json.value, '$[1]') AS installation, json_extract(wanted_json.value, '$[2]') AS capability, json_extract(wanted_json.value, '$[3]') AS webhook, json_extract(wanted_json.value, '$[4]') AS sequence
FROM json_each(?) AS wanted_json) AS wanted ON ingress_gap.org = wanted.org AND ingress_gap.installation = wanted.installation AND ingress_gap.capability = wanted.capability AND ingress_gap.webhook = wanted.webhook AND ingress_gap.sequence = wanted.sequence;
-- wanted (rows as JSON)

-- catching_up.stored
SELECT ingress_page.id
FROM ingress_page
WHERE ingress_page.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- clock_mark.raise
UPDATE doonce_clock
SET now_us=max(doonce_clock.now_us, (SELECT doonce_host_us()))
WHERE doonce_clock.id = ?;
-- 1

-- clock_mark.read
SELECT doonce_clock.now_us, (SELECT doonce_host_us()) AS clock_us
FROM doonce_clock
WHERE doonce_clock.id = ?;
-- 1

-- clock_mark.set
UPDATE doonce_clock
SET now_us=(SELECT doonce_host_us())
WHERE doonce_clock.id = ?;
-- 1

-- commands.conflicts
SELECT handoff_conflict."key", handoff_conflict.slot, handoff_conflict.asked
FROM handoff_conflict
WHERE handoff_conflict."key" IN (SELECT keys."key"
FROM (SELECT json_extract(keys_json.value, '$[0]') AS "key"
FROM json_each(?) AS keys_json) AS keys);
-- keys (rows as JSON)

-- commands.find_handoffs
SELECT handoff."key", handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at, command.id AS applied
FROM handoff
LEFT OUTER
JOIN command ON command.id = handoff.command_id
WHERE handoff."key" IN (SELECT keys."key"
FROM (SELECT json_extract(keys_json.value, '$[0]') AS "key"
FROM json_each(?) AS keys_json) AS keys)
ORDER BY handoff."key";
-- keys (rows as JSON)

-- commands.load
SELECT command.id, command.origin, command.origin_key, command.org, command.installation, command.capability, command.operation, command.local_ref, command.outbox_id, command.payload_digest, command.payload, command.remote_id, command.view_digest, command.principal_id, command.generation, command.link_id, command.link_version, command.method, command.request_origin, command.target, command.headers, command.body, command.body_digest, command.idempotency_key, command.accepted_at
FROM command
WHERE command.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- commands.load_ends
SELECT command_end.command_id, command_end.ended_as, command_end.attempt_id, command_end.result, command_end.reason, command_end.recorded_at
FROM command_end
WHERE command_end.command_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- commands.lock_handoffs
SELECT handoff."key", handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at, command.id AS applied
FROM handoff
LEFT OUTER
JOIN command ON command.id = handoff.command_id
WHERE handoff."key" IN (SELECT keys."key"
FROM (SELECT json_extract(keys_json.value, '$[0]') AS "key"
FROM json_each(?) AS keys_json) AS keys)
ORDER BY handoff."key";
-- keys (rows as JSON)

-- completions.attempts
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.reason, effect_attempt.ended_at
FROM effect_attempt
WHERE effect_attempt.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- conformance.facts
SELECT (SELECT count(*) AS count_1
FROM handoff
WHERE handoff."key" = ?) AS anon_1, (SELECT count(*) AS count_2
FROM (SELECT command.id AS id
FROM command
WHERE command.origin_key = ?) AS anon_3) AS anon_2, (SELECT count(*) AS count_3
FROM work_item
WHERE work_item.subject_id IN (SELECT command.id
FROM command
WHERE command.origin_key = ?)) AS anon_4;
-- key, key, key

-- durability.end_frozen
SELECT pg_terminate_backend(pg_stat_activity.pid) AS pg_terminate_backend_1
FROM pg_stat_activity
WHERE pg_stat_activity.datname = current_database() AND pg_stat_activity.usename = current_user AND pg_stat_activity.application_name = ? AND pg_stat_activity.state = 'active' AND pg_stat_activity.wait_event = 'ClientRead' AND state_change < clock_timestamp() - ? * interval '1 millisecond';
-- application_name, for_ms

-- durability.settings
SELECT journal_mode, synchronous
FROM pragma_journal_mode
JOIN pragma_synchronous ON 1 = 1;
-- no parameters

-- effects.attempts_by_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at, effect_attempt.status
FROM effect_attempt
WHERE effect_attempt.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- effects.bump_evidence
UPDATE effect_attempt
SET evidence_version=(effect_attempt.evidence_version + ?)
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids
WHERE effect_attempt.id = ids.id;
-- 1, ids (rows as JSON)

-- effects.dispositions
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM disposition
WHERE disposition.attempt_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- effects.end
UPDATE effect_attempt
SET state=?, outcome=ends.outcome, reason=ends.reason, ended_at=?, settled_by=ends.settled_by, effect_free=ends.effect_free, status=ends.status, receipt=ends.receipt, result=ends.result
FROM (SELECT json_extract(ends_json.value, '$[0]') AS id, json_extract(ends_json.value, '$[1]') AS outcome, json_extract(ends_json.value, '$[2]') AS reason, json_extract(ends_json.value, '$[3]') AS effect_free, json_extract(ends_json.value, '$[4]') AS settled_by, json_extract(ends_json.value, '$[5]') AS status, json_extract(ends_json.value, '$[6]') AS receipt, json_extract(ends_json.value, '$[7]') AS result
FROM json_each(?) AS ends_json) AS ends
WHERE effect_attempt.id = ends.id AND effect_attempt.outcome IS NULL;
-- 'ended', now_us, ends (rows as JSON)

-- effects.evidence_of
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM attempt_evidence
WHERE attempt_evidence.attempt_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY attempt_evidence.attempt_id, attempt_evidence.recorded_at, attempt_evidence.id;
-- ids (rows as JSON)

-- effects.give_successor
UPDATE disposition
SET evidence_version=?, successor_item_id=?
WHERE disposition.attempt_id = ? AND disposition.successor_item_id IS NULL;
-- version, successor, attempt

-- effects.lineage_of
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM disposition
WHERE disposition.successor_item_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- effects.lock_attempts
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at
FROM effect_attempt
WHERE effect_attempt.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY effect_attempt.id;
-- ids (rows as JSON)

-- effects.mark
UPDATE effect_attempt
SET state=?, request_digest=marks.request_digest, mark_nonce=marks.nonce, dispatched_at=?, horizon_at=marks.horizon_us
FROM (SELECT json_extract(marks_json.value, '$[0]') AS id, json_extract(marks_json.value, '$[1]') AS nonce, json_extract(marks_json.value, '$[2]') AS horizon_us, json_extract(marks_json.value, '$[3]') AS request_digest
FROM json_each(?) AS marks_json) AS marks
WHERE effect_attempt.id = marks.id AND effect_attempt.state = ?;
-- 'dispatched', now_us, marks (rows as JSON), 'prepared'

-- effects.of_subjects
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at
FROM effect_attempt
WHERE effect_attempt.subject_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY effect_attempt.subject_id, effect_attempt.number;
-- ids (rows as JSON)

-- events.load
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM event
WHERE event.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- events.load_objects
SELECT event_object.event_id, event_object.attempt_id, event_object.sealed, event_object.key_id, event_object.read_at
FROM event_object
WHERE event_object.event_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- events.winners
SELECT event.id
FROM event
WHERE event.identity IN (SELECT keys.identity
FROM (SELECT json_extract(keys_json.value, '$[0]') AS identity
FROM json_each(?) AS keys_json) AS keys)
ORDER BY event.identity;
-- keys (rows as JSON)

-- galera.is_node
SHOW SESSION VARIABLES LIKE 'wsrep_on';
-- no parameters

-- galera.members
SELECT cluster_uuid, node_uuid
FROM mysql.wsrep_cluster_members;
-- no parameters

-- incarnation.database_oid
SELECT (SELECT 'database:' || oid
FROM pg_database
WHERE datname = current_database()) AS value;
-- no parameters

-- incarnation.files_made_at
SELECT '/files:' || extract(epoch
FROM change) AS value
FROM pg_stat_file('PG_VERSION') AS anon_1;
-- no parameters

-- incarnation.identifier
SELECT 'system:' || system_identifier
FROM pg_control_system() AS anon_1;
-- no parameters

-- incarnation.last_lossy
SELECT max(database_incarnation.declared_at) AS max_1
FROM database_incarnation
WHERE database_incarnation.declaration = ?;
-- 'lossy'

-- incarnation.made_at
SELECT create_time
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name = 'database_incarnation';
-- no parameters

-- incarnation.may_read
SELECT has_function_privilege('pg_control_system()', 'EXECUTE') AS identifier, has_function_privilege('pg_stat_file(text)', 'EXECUTE') AS files;
-- no parameters

-- incarnation.newest
SELECT database_incarnation.sequence, database_incarnation.id, database_incarnation.identity, database_incarnation.timeline, database_incarnation.declaration, database_incarnation.operator, database_incarnation.reason, database_incarnation.declared_at
FROM database_incarnation
ORDER BY database_incarnation.sequence DESC
LIMIT ? OFFSET ?;
-- 1, 0

-- incarnation.server
SHOW GLOBAL VARIABLES
WHERE variable_name IN ('server_id', 'server_uuid');
-- no parameters

-- incarnation.timeline
SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) || '/table:' || CAST('database_incarnation' AS regclass)::oid AS value;
-- no parameters

-- ingress.active_secrets
SELECT webhook_secret.id, webhook_secret.org, webhook_secret.installation, webhook_secret.capability, webhook_secret.webhook, webhook_secret.sealed, webhook_secret.key_id, webhook_secret.created_at, webhook_secret.ended_at
FROM webhook_secret
WHERE webhook_secret.org = ? AND webhook_secret.installation = ? AND webhook_secret.capability = ? AND webhook_secret.webhook = ? AND webhook_secret.ended_at IS NULL
ORDER BY webhook_secret.created_at DESC, webhook_secret.id DESC;
-- the_org, the_installation, the_capability, the_webhook

-- ingress.at_rest
SELECT ingress_receipt.id
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids) AND NOT (EXISTS (SELECT *
FROM work_item
WHERE work_item.subject_id = ingress_receipt.id AND (work_item.state NOT IN (?, ?, ?, ?))));
-- ids (rows as JSON), 'cancelled', 'dead', 'skipped', 'succeeded'

-- ingress.close_gap
UPDATE ingress_gap
SET closed_at=?, closed_by=?, reason=?
WHERE ingress_gap.org = ? AND ingress_gap.installation = ? AND ingress_gap.capability = ? AND ingress_gap.webhook = ? AND ingress_gap.sequence = ? AND ingress_gap.closed_at IS NULL;
-- now_us, who, why, the_org, the_installation, the_capability, the_webhook, the_sequence

-- ingress.count_rejections
UPDATE ingress_rejection
SET count=(ingress_rejection.count + counted.more), last_at=?
FROM (SELECT json_extract(counted_json.value, '$[0]') AS org, json_extract(counted_json.value, '$[1]') AS installation, json_extract(counted_json.value, '$[2]') AS capability, json_extract(counted_json.value, '$[3]') AS webhook, json_extract(counted_json.value, '$[4]') AS reason, json_extract(counted_json.value, '$[5]') AS more
FROM json_each(?) AS counted_json) AS counted
WHERE ingress_rejection.org = counted.org AND ingress_rejection.installation = counted.installation AND ingress_rejection.capability = counted.capability AND ingress_rejection.webhook = counted.webhook AND ingress_rejection.reason = counted.reason;
-- now_us, counted (rows as JSON)

-- ingress.end_secret
UPDATE webhook_secret
SET sealed=?, ended_at=?
WHERE webhook_secret.org = ? AND webhook_secret.installation = ? AND webhook_secret.capability = ? AND webhook_secret.webhook = ? AND webhook_secret.id = ? AND webhook_secret.ended_at IS NULL;
-- nothing, now_us, the_org, the_installation, the_capability, the_webhook, the_id

-- ingress.erase_pages
UPDATE ingress_page
SET sealed=?
WHERE ingress_page.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- nothing, ids (rows as JSON)

-- ingress.erase_quarantined
UPDATE ingress_quarantine
SET sealed=?
WHERE ingress_quarantine.receipt_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- nothing, ids (rows as JSON)

-- ingress.erase_receipts
UPDATE ingress_receipt
SET sealed=?
WHERE ingress_receipt.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- nothing, ids (rows as JSON)

-- ingress.gap
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.org = ? AND ingress_gap.installation = ? AND ingress_gap.capability = ? AND ingress_gap.webhook = ? AND ingress_gap.sequence = ?;
-- the_org, the_installation, the_capability, the_webhook, the_sequence

-- ingress.gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
JOIN (SELECT json_extract(routes_json.value, '$[0]') AS org, json_extract(routes_json.value, '$[1]') AS installation, json_extract(routes_json.value, '$[2]') AS capability, json_extract(routes_json.value, '$[3]') AS webhook
FROM json_each(?) AS routes_json) AS routes ON ingress_gap.org = routes.org AND ingress_gap.installation = routes.installation AND ingress_gap.capability = routes.capability AND ingress_gap.webhook = routes.webhook
ORDER BY ingress_gap.sequence;
-- routes (rows as JSON)

-- ingress.keys_in_use
SELECT DISTINCT webhook_secret.key_id
FROM webhook_secret
WHERE webhook_secret.ended_at IS NULL;
-- no parameters

-- ingress.load
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- ingress.lock_identities
SELECT ingress_identity.identity, ingress_identity.receipt_id, ingress_identity.body_digest, ingress_identity.nonce, ingress_identity.received_at, ingress_receipt.id AS applied
FROM ingress_identity
LEFT OUTER
JOIN ingress_receipt ON ingress_receipt.id = ingress_identity.receipt_id
WHERE ingress_identity.identity IN (SELECT keys.identity
FROM (SELECT json_extract(keys_json.value, '$[0]') AS identity
FROM json_each(?) AS keys_json) AS keys)
ORDER BY ingress_identity.identity;
-- keys (rows as JSON)

-- ingress.lock_receipts
SELECT ingress_receipt.id, CASE WHEN (ingress_receipt.sealed IS NULL) THEN ? ELSE ? END AS kept
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY ingress_receipt.id;
-- 0, 1, ids (rows as JSON)

-- ingress.old_pages
SELECT ingress_page.id
FROM ingress_page
WHERE ingress_page.sealed IS NOT NULL AND ingress_page.received_at < ?
ORDER BY ingress_page.received_at, ingress_page.id
LIMIT ? OFFSET ?;
-- before_us, rows, 0

-- ingress.old_quarantined
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine
WHERE ingress_quarantine.sealed IS NOT NULL AND ingress_quarantine.received_at < ?
ORDER BY ingress_quarantine.received_at, ingress_quarantine.receipt_id
LIMIT ? OFFSET ?;
-- before_us, rows, 0

-- ingress.old_receipts
SELECT ingress_receipt.id
FROM ingress_receipt
WHERE ingress_receipt.sealed IS NOT NULL AND ingress_receipt.received_at < ? AND NOT (EXISTS (SELECT *
FROM work_item
WHERE work_item.subject_id = ingress_receipt.id AND (work_item.state NOT IN (?, ?, ?, ?))))
ORDER BY ingress_receipt.received_at, ingress_receipt.id
LIMIT ? OFFSET ?;
-- before_us, 'cancelled', 'dead', 'skipped', 'succeeded', rows, 0

-- ingress.open_gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.closed_at IS NULL
ORDER BY ingress_gap.opened_at, ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook
LIMIT ? OFFSET ?;
-- 500, 0

-- ingress.open_gaps_in_scope
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.closed_at IS NULL AND ingress_gap.org = ? AND ingress_gap.installation = ?
ORDER BY ingress_gap.opened_at, ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook
LIMIT ? OFFSET ?;
-- the_org, the_installation, 500, 0

-- ingress.quarantined
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.body_digest, ingress_quarantine.receipt_id
FROM ingress_quarantine
WHERE ingress_quarantine.identity IN (SELECT keys.identity
FROM (SELECT json_extract(keys_json.value, '$[0]') AS identity
FROM json_each(?) AS keys_json) AS keys);
-- keys (rows as JSON)

-- ingress.rejections
SELECT ingress_rejection.org, ingress_rejection.installation, ingress_rejection.capability, ingress_rejection.webhook, ingress_rejection.reason, ingress_rejection.count, ingress_rejection.first_at, ingress_rejection.last_at
FROM ingress_rejection
ORDER BY ingress_rejection.last_at DESC;
-- no parameters

-- ingress.sealed
SELECT ingress_receipt.sealed, ingress_receipt.key_id
FROM ingress_receipt
WHERE ingress_receipt.id = ? AND ingress_receipt.sealed IS NOT NULL;
-- the_receipt

-- ingress.sealed_page
SELECT ingress_page.sealed, ingress_page.key_id
FROM ingress_page
WHERE ingress_page.id = ? AND ingress_page.sealed IS NOT NULL;
-- the_receipt

-- ingress.sealed_quarantined
SELECT ingress_quarantine.sealed, ingress_quarantine.key_id
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id = ? AND ingress_quarantine.sealed IS NOT NULL;
-- the_receipt

-- ingress.widen_gaps
UPDATE ingress_gap
SET losses=(ingress_gap.losses + wider.more), opened_at=CASE WHEN (ingress_gap.opened_at > wider.since_us) THEN wider.since_us ELSE ingress_gap.opened_at END, last_at=?
FROM (SELECT json_extract(wider_json.value, '$[0]') AS org, json_extract(wider_json.value, '$[1]') AS installation, json_extract(wider_json.value, '$[2]') AS capability, json_extract(wider_json.value, '$[3]') AS webhook, json_extract(wider_json.value, '$[4]') AS sequence, json_extract(wider_json.value, '$[5]') AS more, json_extract(wider_json.value, '$[6]') AS since_us
FROM json_each(?) AS wider_json) AS wider
WHERE ingress_gap.org = wider.org AND ingress_gap.installation = wider.installation AND ingress_gap.capability = wider.capability AND ingress_gap.webhook = wider.webhook AND ingress_gap.sequence = wider.sequence;
-- now_us, wider (rows as JSON)

-- lanes.drop_entries
DELETE
FROM work_lane_entry
WHERE (work_lane_entry.lane, work_lane_entry.position) IN (SELECT entries.lane, entries.position
FROM (SELECT json_extract(entries_json.value, '$[0]') AS lane, json_extract(entries_json.value, '$[1]') AS position
FROM json_each(?) AS entries_json) AS entries);
-- entries (rows as JSON)

-- lanes.entries_at
SELECT work_lane_entry.lane, work_lane_entry.position, work_lane_entry.item_id
FROM work_lane_entry
WHERE (work_lane_entry.lane, work_lane_entry.position) IN (SELECT entries.lane, entries.position
FROM (SELECT json_extract(entries_json.value, '$[0]') AS lane, json_extract(entries_json.value, '$[1]') AS position
FROM json_each(?) AS entries_json) AS entries);
-- entries (rows as JSON)

-- lanes.inherit_entries
UPDATE work_lane_entry
SET item_id=entries.item_id, due=entries.due
FROM (SELECT json_extract(entries_json.value, '$[0]') AS lane, json_extract(entries_json.value, '$[1]') AS position, json_extract(entries_json.value, '$[2]') AS item_id, json_extract(entries_json.value, '$[3]') AS due
FROM json_each(?) AS entries_json) AS entries
WHERE work_lane_entry.lane = entries.lane AND work_lane_entry.position = entries.position;
-- entries (rows as JSON)

-- lanes.lock
SELECT work_lane.lane, work_lane.policy, work_lane.tail, work_lane.holder, work_lane.hold_until, work_lane.nominee, work_lane.nominee_due
FROM work_lane
WHERE work_lane.lane IN (SELECT lanes.lane
FROM (SELECT json_extract(lanes_json.value, '$[0]') AS lane
FROM json_each(?) AS lanes_json) AS lanes)
ORDER BY work_lane.lane;
-- lanes (rows as JSON)

-- lanes.next_in_source
SELECT chosen.lane, work_item.id, work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.state, work_item.run_after, work_item.source_lane, work_item.target_lane, work_item.target_position
FROM (SELECT lanes.lane AS lane, (SELECT work_lane_entry.item_id
FROM work_lane_entry
WHERE work_lane_entry.lane = lanes.lane
ORDER BY work_lane_entry.position
LIMIT ? OFFSET ?) AS item_id
FROM (SELECT json_extract(lanes_json.value, '$[0]') AS lane
FROM json_each(?) AS lanes_json) AS lanes) AS chosen
JOIN work_item ON work_item.id = chosen.item_id;
-- 1, 0, lanes (rows as JSON)

-- lanes.next_in_target
SELECT chosen.lane, work_item.id, work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.state, work_item.run_after, work_item.source_lane, work_item.target_lane, work_item.target_position
FROM (SELECT lanes.lane AS lane, (SELECT work_lane_entry.item_id
FROM work_lane_entry
WHERE work_lane_entry.lane = lanes.lane AND work_lane_entry.open = ?
ORDER BY work_lane_entry.open, work_lane_entry.due, work_lane_entry.position
LIMIT ? OFFSET ?) AS item_id
FROM (SELECT json_extract(lanes_json.value, '$[0]') AS lane
FROM json_each(?) AS lanes_json) AS lanes) AS chosen
JOIN work_item ON work_item.id = chosen.item_id;
-- 1, 1, 0, lanes (rows as JSON)

-- lanes.save
UPDATE work_lane
SET tail=lanes.tail, holder=lanes.holder, hold_until=lanes.hold_until, nominee=lanes.nominee, nominee_due=lanes.due
FROM (SELECT json_extract(lanes_json.value, '$[0]') AS lane, json_extract(lanes_json.value, '$[1]') AS tail, json_extract(lanes_json.value, '$[2]') AS holder, json_extract(lanes_json.value, '$[3]') AS hold_until, json_extract(lanes_json.value, '$[4]') AS nominee, json_extract(lanes_json.value, '$[5]') AS due
FROM json_each(?) AS lanes_json) AS lanes
WHERE work_lane.lane = lanes.lane;
-- lanes (rows as JSON)

-- lanes.set_entries
UPDATE work_lane_entry
SET open=entries.open, due=entries.due
FROM (SELECT json_extract(entries_json.value, '$[0]') AS lane, json_extract(entries_json.value, '$[1]') AS position, json_extract(entries_json.value, '$[2]') AS open, json_extract(entries_json.value, '$[3]') AS due
FROM json_each(?) AS entries_json) AS entries
WHERE work_lane_entry.lane = entries.lane AND work_lane_entry.position = entries.position;
-- entries (rows as JSON)

-- links.find
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
JOIN (SELECT json_extract(keys_json.value, '$[0]') AS org, json_extract(keys_json.value, '$[1]') AS installation, json_extract(keys_json.value, '$[2]') AS kind, json_extract(keys_json.value, '$[3]') AS local_ref
FROM json_each(?) AS keys_json) AS keys ON remote_link.org = keys.org AND remote_link.installation = keys.installation AND remote_link.kind = keys.kind AND remote_link.local_ref = keys.local_ref
WHERE remote_link.slot = ?;
-- keys (rows as JSON), ''

-- links.find_remote
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
JOIN (SELECT json_extract(keys_json.value, '$[0]') AS org, json_extract(keys_json.value, '$[1]') AS installation, json_extract(keys_json.value, '$[2]') AS principal_id, json_extract(keys_json.value, '$[3]') AS kind, json_extract(keys_json.value, '$[4]') AS remote_id
FROM json_each(?) AS keys_json) AS keys ON remote_link.org = keys.org AND remote_link.installation = keys.installation AND remote_link.principal_id = keys.principal_id AND remote_link.kind = keys.kind AND remote_link.remote_id = keys.remote_id
WHERE remote_link.slot = ?;
-- keys (rows as JSON), ''

-- links.get
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
WHERE remote_link.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY remote_link.id;
-- ids (rows as JSON)

-- links.lock
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
WHERE remote_link.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY remote_link.id;
-- ids (rows as JSON)

-- links.lock_local
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
JOIN (SELECT json_extract(keys_json.value, '$[0]') AS org, json_extract(keys_json.value, '$[1]') AS installation, json_extract(keys_json.value, '$[2]') AS kind, json_extract(keys_json.value, '$[3]') AS local_ref
FROM json_each(?) AS keys_json) AS keys ON remote_link.org = keys.org AND remote_link.installation = keys.installation AND remote_link.kind = keys.kind AND remote_link.local_ref = keys.local_ref
WHERE remote_link.slot = ?
ORDER BY remote_link.id;
-- keys (rows as JSON), ''

-- links.lock_remote
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
JOIN (SELECT json_extract(keys_json.value, '$[0]') AS org, json_extract(keys_json.value, '$[1]') AS installation, json_extract(keys_json.value, '$[2]') AS principal_id, json_extract(keys_json.value, '$[3]') AS kind, json_extract(keys_json.value, '$[4]') AS remote_id
FROM json_each(?) AS keys_json) AS keys ON remote_link.org = keys.org AND remote_link.installation = keys.installation AND remote_link.principal_id = keys.principal_id AND remote_link.kind = keys.kind AND remote_link.remote_id = keys.remote_id
WHERE remote_link.slot = ?
ORDER BY remote_link.id;
-- keys (rows as JSON), ''

-- links.move
UPDATE remote_link
SET slot=links.slot, state=links.state, version=(remote_link.version + ?), updated_at=?
FROM (SELECT json_extract(links_json.value, '$[0]') AS id, json_extract(links_json.value, '$[1]') AS version, json_extract(links_json.value, '$[2]') AS slot, json_extract(links_json.value, '$[3]') AS state
FROM json_each(?) AS links_json) AS links
WHERE remote_link.id = links.id AND remote_link.version = links.version;
-- 1, now_us, links (rows as JSON)

-- links.renew
UPDATE remote_link
SET generation=links.generation, version=(remote_link.version + ?), authority=links.authority, updated_at=?
FROM (SELECT json_extract(links_json.value, '$[0]') AS id, json_extract(links_json.value, '$[1]') AS generation, json_extract(links_json.value, '$[2]') AS authority
FROM json_each(?) AS links_json) AS links
WHERE remote_link.id = links.id;
-- 1, now_us, links (rows as JSON)

-- links.share
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
WHERE remote_link.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY remote_link.id;
-- ids (rows as JSON)

-- operate.attempt_evidence_by_attempt_id
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM attempt_evidence
WHERE attempt_evidence.attempt_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY attempt_evidence.recorded_at, attempt_evidence.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.attempt_evidence_by_id
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM attempt_evidence
WHERE attempt_evidence.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY attempt_evidence.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.binding_generation_by_principal_id
SELECT binding_generation.principal_id, binding_generation.generation, binding_generation.id, binding_generation.state, binding_generation.remote_subject, binding_generation.remote_tenant, binding_generation.created_at, binding_generation.ended_at, binding_generation.reason
FROM binding_generation
WHERE binding_generation.principal_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY binding_generation.generation
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.command_by_id
SELECT command.id, command.origin, command.origin_key, command.org, command.installation, command.capability, command.operation, command.local_ref, command.outbox_id, command.payload_digest, command.payload, command.remote_id, command.view_digest, command.principal_id, command.generation, command.link_id, command.link_version, command.method, command.request_origin, command.target, command.headers, command.body, command.body_digest, command.idempotency_key, command.accepted_at
FROM command
WHERE command.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY command.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.command_end_by_command_id
SELECT command_end.command_id, command_end.ended_as, command_end.attempt_id, command_end.result, command_end.reason, command_end.recorded_at
FROM command_end
WHERE command_end.command_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY command_end.command_id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.depth
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready
WHERE work_ready.family = ?
LIMIT ? OFFSET ?) AS bounded;
-- family, rows, 0

-- operate.depth_in_scope
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready
WHERE work_ready.family = ? AND work_ready.shelf = ? AND work_ready.org = ? AND work_ready.installation = ?
LIMIT ? OFFSET ?) AS bounded;
-- family, 0, the_org, the_installation, rows, 0

-- operate.disposition_by_attempt_id
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM disposition
WHERE disposition.attempt_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY disposition.recorded_at
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.effect_attempt_by_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.number, effect_attempt.work_id, effect_attempt.operation, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.token, effect_attempt.epoch, effect_attempt.generation, effect_attempt.link_version, effect_attempt.request_digest, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.horizon_at, effect_attempt.ended_at, effect_attempt.settled_by, effect_attempt.effect_free, effect_attempt.status, effect_attempt.receipt, effect_attempt.result, effect_attempt.evidence_version
FROM effect_attempt
WHERE effect_attempt.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY effect_attempt.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.effect_attempt_by_subject_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.number, effect_attempt.work_id, effect_attempt.operation, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.token, effect_attempt.epoch, effect_attempt.generation, effect_attempt.link_version, effect_attempt.request_digest, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.horizon_at, effect_attempt.ended_at, effect_attempt.settled_by, effect_attempt.effect_free, effect_attempt.status, effect_attempt.receipt, effect_attempt.result, effect_attempt.evidence_version
FROM effect_attempt
WHERE effect_attempt.subject_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY effect_attempt.prepared_at, effect_attempt.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.event_by_id
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM event
WHERE event.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY event.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.event_by_id_in_scope
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM event
WHERE event.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted) AND event.org = ? AND event.installation = ?
ORDER BY event.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), the_org, the_installation, 500, 0

-- operate.event_by_receipt_id
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM event
WHERE event.receipt_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY event.position
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.event_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT event.org AS org, event.installation AS installation
FROM event
WHERE event.id > ?
ORDER BY event.id DESC
LIMIT ? OFFSET ?) AS looked_at;
-- after, rows, 0

-- operate.event_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = ? AND looked_at.installation = ?) THEN ? END) AS count_2
FROM (SELECT event.org AS org, event.installation AS installation
FROM event
WHERE event.id > ?
ORDER BY event.id DESC
LIMIT ? OFFSET ?) AS looked_at;
-- the_org, the_installation, 1, after, rows, 0

-- operate.event_object_by_event_id
SELECT event_object.event_id, event_object.attempt_id, event_object.sealed, event_object.key_id, event_object.read_at
FROM event_object
WHERE event_object.event_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY event_object.event_id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.handoff_by_key
SELECT handoff."key", handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM handoff
WHERE handoff."key" IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY handoff."key"
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.handoff_by_key_in_scope
SELECT handoff."key", handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM handoff
WHERE handoff."key" IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted) AND handoff.org = ? AND handoff.installation = ?
ORDER BY handoff."key"
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), the_org, the_installation, 500, 0

-- operate.handoff_by_outbox_id
SELECT handoff."key", handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM handoff
WHERE handoff.outbox_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY handoff.recorded_at, handoff."key"
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.handoff_by_receipt_id
SELECT handoff."key", handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM handoff
WHERE handoff.receipt_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY handoff."key"
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.handoff_conflict_by_key
SELECT handoff_conflict."key", handoff_conflict.slot, handoff_conflict.asked, handoff_conflict.mismatch, handoff_conflict.outbox_id, handoff_conflict.payload_digest, handoff_conflict.recorded_at
FROM handoff_conflict
WHERE handoff_conflict."key" IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY handoff_conflict.recorded_at
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_catch_up_by_id
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY ingress_catch_up.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_catch_up_by_id_in_scope
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted) AND ingress_catch_up.org = ? AND ingress_catch_up.installation = ?
ORDER BY ingress_catch_up.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), the_org, the_installation, 500, 0

-- operate.ingress_catch_up_by_page_id
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.page_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY ingress_catch_up.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_identity_by_identity
SELECT ingress_identity.identity, ingress_identity.receipt_id, ingress_identity.body_digest, ingress_identity.nonce, ingress_identity.received_at
FROM ingress_identity
WHERE ingress_identity.identity IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY ingress_identity.identity
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_page_by_catch_up_id
SELECT ingress_page.id, ingress_page.org, ingress_page.installation, ingress_page.capability, ingress_page.webhook, ingress_page.catch_up_id, ingress_page.pass, ingress_page.number, ingress_page.cursor_digest, ingress_page.view_digest, ingress_page.attempt_id, ingress_page.items, ingress_page.events, ingress_page.fault, ingress_page.body_digest, ingress_page.body_bytes, ingress_page.sealed, ingress_page.key_id, ingress_page.received_at
FROM ingress_page
WHERE ingress_page.catch_up_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY ingress_page.pass, ingress_page.number
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_page_by_id
SELECT ingress_page.id, ingress_page.org, ingress_page.installation, ingress_page.capability, ingress_page.webhook, ingress_page.catch_up_id, ingress_page.pass, ingress_page.number, ingress_page.cursor_digest, ingress_page.view_digest, ingress_page.attempt_id, ingress_page.items, ingress_page.events, ingress_page.fault, ingress_page.body_digest, ingress_page.body_bytes, ingress_page.sealed, ingress_page.key_id, ingress_page.received_at
FROM ingress_page
WHERE ingress_page.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY ingress_page.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_quarantine_by_identity
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM ingress_quarantine
WHERE ingress_quarantine.identity IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY ingress_quarantine.received_at, ingress_quarantine.receipt_id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_quarantine_by_receipt_id
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY ingress_quarantine.receipt_id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_quarantine_by_receipt_id_in_scope
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted) AND ingress_quarantine.org = ? AND ingress_quarantine.installation = ?
ORDER BY ingress_quarantine.receipt_id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), the_org, the_installation, 500, 0

-- operate.ingress_quarantine_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT ingress_quarantine.org AS org, ingress_quarantine.installation AS installation
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id > ?
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT ? OFFSET ?) AS looked_at;
-- after, rows, 0

-- operate.ingress_quarantine_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = ? AND looked_at.installation = ?) THEN ? END) AS count_2
FROM (SELECT ingress_quarantine.org AS org, ingress_quarantine.installation AS installation
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id > ?
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT ? OFFSET ?) AS looked_at;
-- the_org, the_installation, 1, after, rows, 0

-- operate.ingress_receipt_by_id
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY ingress_receipt.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.ingress_receipt_by_id_in_scope
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted) AND ingress_receipt.org = ? AND ingress_receipt.installation = ?
ORDER BY ingress_receipt.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), the_org, the_installation, 500, 0

-- operate.ingress_receipt_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT ingress_receipt.org AS org, ingress_receipt.installation AS installation
FROM ingress_receipt
WHERE ingress_receipt.id > ?
ORDER BY ingress_receipt.id DESC
LIMIT ? OFFSET ?) AS looked_at;
-- after, rows, 0

-- operate.ingress_receipt_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = ? AND looked_at.installation = ?) THEN ? END) AS count_2
FROM (SELECT ingress_receipt.org AS org, ingress_receipt.installation AS installation
FROM ingress_receipt
WHERE ingress_receipt.id > ?
ORDER BY ingress_receipt.id DESC
LIMIT ? OFFSET ?) AS looked_at;
-- the_org, the_installation, 1, after, rows, 0

-- operate.newer
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready
WHERE work_ready.family = ? AND work_ready.shelf > 1
LIMIT ? OFFSET ?) AS bounded;
-- family, rows, 0

-- operate.newer_in_scope
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready
WHERE work_ready.family = ? AND work_ready.shelf > 1 AND work_ready.org = ? AND work_ready.installation = ?
LIMIT ? OFFSET ?) AS bounded;
-- family, the_org, the_installation, rows, 0

-- operate.newest_quarantined
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT ? OFFSET ?;
-- 20, 0

-- operate.newest_quarantined_in_scope
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine
WHERE ingress_quarantine.org = ? AND ingress_quarantine.installation = ?
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT ? OFFSET ?;
-- the_org, the_installation, 20, 0

-- operate.oldest
SELECT min((SELECT work_ready.due
FROM work_ready
WHERE work_ready.family = ? AND work_ready.shelf = ? AND work_ready.org = scopes.org AND work_ready.installation = scopes.installation
ORDER BY work_ready.due
LIMIT ? OFFSET ?)) AS min_1
FROM (SELECT json_extract(scopes_json.value, '$[0]') AS org, json_extract(scopes_json.value, '$[1]') AS installation
FROM json_each(?) AS scopes_json) AS scopes;
-- family, 0, 1, 0, scopes (rows as JSON)

-- operate.principal_by_id
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state, principal.created_at, principal.updated_at
FROM principal
WHERE principal.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY principal.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.principal_by_id_in_scope
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state, principal.created_at, principal.updated_at
FROM principal
WHERE principal.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted) AND principal.org = ? AND principal.installation = ?
ORDER BY principal.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), the_org, the_installation, 500, 0

-- operate.remote_link_by_id
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.slot, remote_link.state, remote_link.version, remote_link.authority, remote_link.created_at, remote_link.updated_at
FROM remote_link
WHERE remote_link.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY remote_link.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.remote_link_by_id_in_scope
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.slot, remote_link.state, remote_link.version, remote_link.authority, remote_link.created_at, remote_link.updated_at
FROM remote_link
WHERE remote_link.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted) AND remote_link.org = ? AND remote_link.installation = ?
ORDER BY remote_link.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), the_org, the_installation, 500, 0

-- operate.turned_away
SELECT ingress_rejection.reason, CAST(sum(ingress_rejection.count) AS BIGINT) AS sum_1, max(ingress_rejection.last_at) AS max_1
FROM ingress_rejection
GROUP BY ingress_rejection.reason
ORDER BY ingress_rejection.reason;
-- no parameters

-- operate.turned_away_in_scope
SELECT ingress_rejection.reason, CAST(sum(ingress_rejection.count) AS BIGINT) AS sum_1, max(ingress_rejection.last_at) AS max_1
FROM ingress_rejection
WHERE ingress_rejection.org = ? AND ingress_rejection.installation = ?
GROUP BY ingress_rejection.reason
ORDER BY ingress_rejection.reason;
-- the_org, the_installation

-- operate.unresolved
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane, min(CASE WHEN (looked_into.state IN (?, ?, ?, ?)) THEN ? ELSE ? END) AS min_1
FROM work_item AS looked_into
JOIN effect_attempt ON effect_attempt.id = looked_into.subject_id
JOIN work_item AS effect ON effect.id = effect_attempt.work_id
LEFT OUTER
JOIN disposition ON disposition.attempt_id = effect_attempt.id
LEFT OUTER
JOIN command_end ON command_end.command_id = effect_attempt.subject_id
WHERE looked_into.family = 'reconcile' AND effect_attempt.outcome IN (?, ?) AND command_end.command_id IS NULL AND (disposition.attempt_id IS NULL OR disposition.verdict = ? AND disposition.successor_item_id IS NULL)
GROUP BY effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane
ORDER BY effect_attempt.ended_at, effect_attempt.id
LIMIT ? OFFSET ?;
-- 'cancelled', 'dead', 'skipped', 'succeeded', 1, 0, 'OUTCOME_UNKNOWN', 'REPLAY_SAFE_RETRY', 'no_effect_proven', 101, 0

-- operate.unresolved_in_scope
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane, min(CASE WHEN (looked_into.state IN (?, ?, ?, ?)) THEN ? ELSE ? END) AS min_1
FROM work_item AS looked_into
JOIN effect_attempt ON effect_attempt.id = looked_into.subject_id
JOIN work_item AS effect ON effect.id = effect_attempt.work_id
LEFT OUTER
JOIN disposition ON disposition.attempt_id = effect_attempt.id
LEFT OUTER
JOIN command_end ON command_end.command_id = effect_attempt.subject_id
WHERE looked_into.family = 'reconcile' AND effect_attempt.outcome IN (?, ?) AND command_end.command_id IS NULL AND (disposition.attempt_id IS NULL OR disposition.verdict = ? AND disposition.successor_item_id IS NULL) AND effect.org = ? AND effect.installation = ?
GROUP BY effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane
ORDER BY effect_attempt.ended_at, effect_attempt.id
LIMIT ? OFFSET ?;
-- 'cancelled', 'dead', 'skipped', 'succeeded', 1, 0, 'OUTCOME_UNKNOWN', 'REPLAY_SAFE_RETRY', 'no_effect_proven', the_org, the_installation, 101, 0

-- operate.waiting_in_lanes
SELECT count(DISTINCT bounded.item_id) AS count_1
FROM (SELECT work_lane_entry.item_id AS item_id
FROM work_lane_entry
LIMIT ? OFFSET ?) AS bounded;
-- entries, 0

-- operate.work_item_by_id
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.updated_at, work_item.finished_at
FROM work_item
WHERE work_item.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY work_item.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.work_item_by_subject_id
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.updated_at, work_item.finished_at
FROM work_item
WHERE work_item.subject_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY work_item.created_at, work_item.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.work_item_history_by_id
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, work_item_history.attempts, work_item_history.claims, work_item_history.failures, work_item_history.deferrals, work_item_history.expiries, work_item_history.lease_owner, work_item_history.ownership_epoch, work_item_history.failure_class, work_item_history.summary, work_item_history.replay_of, work_item_history.predecessor, work_item_history.created_at, work_item_history.finished_at, work_item_history.moved_at
FROM work_item_history
WHERE work_item_history.id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY work_item_history.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- operate.work_item_history_by_subject_id
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, work_item_history.attempts, work_item_history.claims, work_item_history.failures, work_item_history.deferrals, work_item_history.expiries, work_item_history.lease_owner, work_item_history.ownership_epoch, work_item_history.failure_class, work_item_history.summary, work_item_history.replay_of, work_item_history.predecessor, work_item_history.created_at, work_item_history.finished_at, work_item_history.moved_at
FROM work_item_history
WHERE work_item_history.subject_id IN (SELECT wanted.value
FROM (SELECT json_extract(wanted_json.value, '$[0]') AS value
FROM json_each(?) AS wanted_json) AS wanted)
ORDER BY work_item_history.created_at, work_item_history.id
LIMIT ? OFFSET ?;
-- wanted (rows as JSON), 500, 0

-- ownership.read
SELECT work_ownership.family, work_ownership.deployment, work_ownership.release_digest, work_ownership.epoch, work_ownership.operation_id, work_ownership.state, work_ownership.changed_at
FROM work_ownership
JOIN (SELECT json_extract(families_json.value, '$[0]') AS family
FROM json_each(?) AS families_json) AS families ON work_ownership.family = families.family;
-- families (rows as JSON)

-- ownership.read_all
SELECT work_ownership.family, work_ownership.deployment, work_ownership.release_digest, work_ownership.epoch, work_ownership.operation_id, work_ownership.state, work_ownership.changed_at
FROM work_ownership;
-- no parameters

-- principals.by_name
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM principal
JOIN (SELECT json_extract(names_json.value, '$[0]') AS org, json_extract(names_json.value, '$[1]') AS installation, json_extract(names_json.value, '$[2]') AS called
FROM json_each(?) AS names_json) AS names ON principal.org = names.org AND principal.installation = names.installation AND principal.name = names.called
ORDER BY principal.id;
-- names (rows as JSON)

-- principals.end_generation
UPDATE binding_generation
SET state=?, ended_at=?, reason=?
WHERE binding_generation.principal_id = ? AND binding_generation.generation = ? AND binding_generation.state = ?;
-- 'ended', now_us, why, the_principal_id, the_generation, 'current'

-- principals.erase_tokens
UPDATE token_version
SET sealed=NULL
WHERE token_version.principal_id = ? AND token_version.sealed IS NOT NULL AND NOT (token_version.generation = ? AND token_version.version = ?);
-- the_principal_id, but_generation, but_version

-- principals.generation
SELECT binding_generation.principal_id, binding_generation.generation, binding_generation.id, binding_generation.state, binding_generation.remote_subject, binding_generation.remote_tenant, binding_generation.created_at, binding_generation.ended_at, binding_generation.reason
FROM binding_generation
WHERE binding_generation.principal_id = ? AND binding_generation.generation = ?;
-- the_principal_id, the_generation

-- principals.get
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM principal
WHERE principal.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY principal.id;
-- ids (rows as JSON)

-- principals.lock
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM principal
WHERE principal.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY principal.id;
-- ids (rows as JSON)

-- principals.lock_by_name
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM principal
JOIN (SELECT json_extract(names_json.value, '$[0]') AS org, json_extract(names_json.value, '$[1]') AS installation, json_extract(names_json.value, '$[2]') AS called
FROM json_each(?) AS names_json) AS names ON principal.org = names.org AND principal.installation = names.installation AND principal.name = names.called
ORDER BY principal.id;
-- names (rows as JSON)

-- principals.set
UPDATE principal
SET current_generation=?, state=?, updated_at=?
WHERE principal.id = ?;
-- new_generation, new_state, now_us, the_id

-- principals.tokens
SELECT token_version.principal_id, token_version.generation, token_version.version, token_version.sealed, token_version.key_id
FROM token_version
JOIN principal ON principal.id = token_version.principal_id AND principal.current_generation = token_version.generation AND principal.state = ?
WHERE token_version.sealed IS NOT NULL AND token_version.principal_id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- 'connected', ids (rows as JSON)

-- principals.tokens_under_other_keys
SELECT token_version.principal_id, token_version.generation, token_version.version, token_version.sealed, token_version.key_id
FROM token_version
JOIN principal ON principal.id = token_version.principal_id AND principal.current_generation = token_version.generation AND principal.state = ?
WHERE token_version.sealed IS NOT NULL AND token_version.key_id != ?
ORDER BY token_version.principal_id;
-- 'connected', key

-- rewrap.event_object_page
SELECT event_object.event_id AS name, event_object.sealed, event_object.key_id
FROM event_object
WHERE event_object.event_id > ? AND event_object.key_id != ? AND event_object.sealed IS NOT NULL
ORDER BY event_object.event_id
LIMIT ? OFFSET ?;
-- after, current, rows, 0

-- rewrap.event_object_replace
UPDATE event_object
SET sealed=?, key_id=?
WHERE event_object.event_id = ? AND event_object.key_id = ? AND event_object.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.event_page
SELECT event.id AS name, event.sealed, event.key_id
FROM event
WHERE event.id > ? AND event.key_id != ? AND event.sealed IS NOT NULL
ORDER BY event.id
LIMIT ? OFFSET ?;
-- after, current, rows, 0

-- rewrap.event_replace
UPDATE event
SET sealed=?, key_id=?
WHERE event.id = ? AND event.key_id = ? AND event.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_page_page
SELECT ingress_page.id AS name, ingress_page.sealed, ingress_page.key_id
FROM ingress_page
WHERE ingress_page.id > ? AND ingress_page.key_id != ? AND ingress_page.sealed IS NOT NULL
ORDER BY ingress_page.id
LIMIT ? OFFSET ?;
-- after, current, rows, 0

-- rewrap.ingress_page_replace
UPDATE ingress_page
SET sealed=?, key_id=?
WHERE ingress_page.id = ? AND ingress_page.key_id = ? AND ingress_page.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_quarantine_page
SELECT ingress_quarantine.receipt_id AS name, ingress_quarantine.sealed, ingress_quarantine.key_id
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id > ? AND ingress_quarantine.key_id != ? AND ingress_quarantine.sealed IS NOT NULL
ORDER BY ingress_quarantine.receipt_id
LIMIT ? OFFSET ?;
-- after, current, rows, 0

-- rewrap.ingress_quarantine_replace
UPDATE ingress_quarantine
SET sealed=?, key_id=?
WHERE ingress_quarantine.receipt_id = ? AND ingress_quarantine.key_id = ? AND ingress_quarantine.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_receipt_page
SELECT ingress_receipt.id AS name, ingress_receipt.sealed, ingress_receipt.key_id
FROM ingress_receipt
WHERE ingress_receipt.id > ? AND ingress_receipt.key_id != ? AND ingress_receipt.sealed IS NOT NULL
ORDER BY ingress_receipt.id
LIMIT ? OFFSET ?;
-- after, current, rows, 0

-- rewrap.ingress_receipt_replace
UPDATE ingress_receipt
SET sealed=?, key_id=?
WHERE ingress_receipt.id = ? AND ingress_receipt.key_id = ? AND ingress_receipt.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.webhook_secret_page
SELECT webhook_secret.id AS name, webhook_secret.sealed, webhook_secret.key_id
FROM webhook_secret
WHERE webhook_secret.id > ? AND webhook_secret.key_id != ? AND webhook_secret.sealed IS NOT NULL
ORDER BY webhook_secret.id
LIMIT ? OFFSET ?;
-- after, current, rows, 0

-- rewrap.webhook_secret_replace
UPDATE webhook_secret
SET sealed=?, key_id=?
WHERE webhook_secret.id = ? AND webhook_secret.key_id = ? AND webhook_secret.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- schema.compatible_from
SELECT doonce_schema.compatible_from
FROM doonce_schema;
-- no parameters

-- tidb.cluster
SELECT variable_value
FROM mysql.tidb
WHERE variable_name = 'cluster_id';
-- no parameters

-- tidb.made
SELECT create_time, tidb_table_id
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name = 'database_incarnation';
-- no parameters

-- trust.by_hash
SELECT credential.hash, credential.id, credential.org, credential.installation, credential.capabilities, credential.state, credential.note, credential.created_at, credential.revoked_at
FROM credential
WHERE credential.hash = ?;
-- the_hash

-- trust.lock_by_id
SELECT credential.hash, credential.id, credential.org, credential.installation, credential.capabilities, credential.state, credential.note, credential.created_at, credential.revoked_at
FROM credential
WHERE credential.id = ?;
-- the_id

-- trust.read_all
SELECT credential.hash, credential.id, credential.org, credential.installation, credential.capabilities, credential.state, credential.note, credential.created_at, credential.revoked_at
FROM credential
ORDER BY credential.created_at, credential.id;
-- no parameters

-- trust.revoke
UPDATE credential
SET state=?, revoked_at=?
WHERE credential.id = ? AND credential.state = ?;
-- 'revoked', now_us, the_id, 'active'

-- work.advance
UPDATE work_item
SET run_after=?, updated_at=?
FROM (SELECT json_extract(due_json.value, '$[0]') AS id
FROM json_each(?) AS due_json) AS due
WHERE work_item.id = due.id;
-- now_us, now_us, due (rows as JSON)

-- work.candidates
SELECT work_ready.family, work_ready.shelf, work_ready.org, work_ready.installation, work_ready.due, work_ready.item_id, work_ready.source_lane, work_ready.target_lane
FROM work_ready
WHERE work_ready.family = ? AND work_ready.shelf = ? AND work_ready.org = ? AND work_ready.installation = ? AND work_ready.due >= ? AND work_ready.due <= (SELECT max(now_us, doonce_host_us())
FROM doonce_clock
WHERE id = 1)
ORDER BY work_ready.due, work_ready.item_id
LIMIT ? OFFSET ?;
-- family, shelf, org, installation, since, rows, 0

-- work.count_dispatch
UPDATE work_item
SET attempts=(work_item.attempts + ?), lease_until=marks.until_us, updated_at=?
FROM (SELECT json_extract(marks_json.value, '$[0]') AS id, json_extract(marks_json.value, '$[1]') AS until_us
FROM json_each(?) AS marks_json) AS marks
WHERE work_item.id = marks.id;
-- 1, now_us, marks (rows as JSON)

-- work.drop_ready
DELETE
FROM work_ready
WHERE (work_ready.family, work_ready.shelf, work_ready.org, work_ready.installation, work_ready.due, work_ready.item_id) IN (SELECT keys.family, keys.shelf, keys.org, keys.installation, keys.due, keys.item_id
FROM (SELECT json_extract(keys_json.value, '$[0]') AS family, json_extract(keys_json.value, '$[1]') AS shelf, json_extract(keys_json.value, '$[2]') AS org, json_extract(keys_json.value, '$[3]') AS installation, json_extract(keys_json.value, '$[4]') AS due, json_extract(keys_json.value, '$[5]') AS item_id
FROM json_each(?) AS keys_json) AS keys);
-- keys (rows as JSON)

-- work.for_subject
SELECT work_item.id, work_item.source_lane, work_item.target_lane
FROM work_item
WHERE work_item.subject_id = ? AND work_item.family = ?;
-- subject_id, family

-- work.forget_claimers
DELETE
FROM work_claimer
WHERE (work_claimer.owner, work_claimer.family) IN (SELECT old.owner, old.family
FROM (SELECT json_extract(old_json.value, '$[0]') AS owner, json_extract(old_json.value, '$[1]') AS family
FROM json_each(?) AS old_json) AS old) AND work_claimer.claimed_at < ?;
-- old (rows as JSON), before_us

-- work.forget_leases
DELETE
FROM work_lease
WHERE work_lease.token IN (SELECT tokens.token
FROM (SELECT json_extract(tokens_json.value, '$[0]') AS token
FROM json_each(?) AS tokens_json) AS tokens);
-- tokens (rows as JSON)

-- work.in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM work_item_history
WHERE work_item_history.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- work.keep_in_history
INSERT INTO work_item_history (id, family, org, installation, subject_kind, subject_id, view_digest, capability_version, source_lane, source_position, target_lane, target_position, state, attempts, claims, failures, deferrals, expiries, lease_owner, ownership_epoch, failure_class, summary, replay_of, predecessor, created_at, finished_at, moved_at) SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.attempts, work_item.claims, work_item.failures, work_item.deferrals, work_item.expiries, work_item.lease_owner, work_item.ownership_epoch, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.finished_at, ? AS moved_at
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- now_us, ids (rows as JSON)

-- work.leases_over
SELECT work_lease.token, work_lease.items
FROM work_lease
WHERE work_lease.family = ? AND work_lease.due <= (SELECT max(now_us, doonce_host_us())
FROM doonce_clock
WHERE id = 1)
ORDER BY work_lease.due
LIMIT 64 OFFSET ?;
-- family, 0

-- work.leave_for_history
DELETE
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- work.lock_claimed
SELECT work_item.id, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY work_item.id;
-- ids (rows as JSON)

-- work.lock_claimer
SELECT work_claimer.token, work_claimer.items
FROM work_claimer
WHERE work_claimer.owner = ? AND work_claimer.family = ?;
-- owner, family

-- work.lock_free_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY work_item.id;
-- ids (rows as JSON)

-- work.lock_in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM work_item_history
WHERE work_item_history.id = ?;
-- item

-- work.lock_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY work_item.id;
-- ids (rows as JSON)

-- work.lock_old
SELECT work_item.id, work_item.family, work_item.subject_kind, work_item.subject_id, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.finished_at
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids)
ORDER BY work_item.id;
-- ids (rows as JSON)

-- work.lock_walk
SELECT work_retention.name, work_retention.passed, work_retention.moved, work_retention.seen_since, work_retention.overdue_since, work_retention.walked_at
FROM work_retention
WHERE work_retention.name = ?;
-- walk

-- work.made_at
SELECT work_item.id, work_item.created_at
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- work.next_hint
SELECT work_ready.org, work_ready.installation
FROM work_ready
WHERE work_ready.family = ? AND work_ready.shelf = ? AND (work_ready.org, work_ready.installation) >= (?, ?)
ORDER BY work_ready.org, work_ready.installation, work_ready.due
LIMIT 1 OFFSET ?;
-- family, shelf, org, installation, 0

-- work.note
UPDATE work_item
SET summary=(coalesce(work_item.summary, ?) || ?)
WHERE work_item.id = ?;
-- '', note, item

-- work.old_claimers
SELECT work_claimer.owner, work_claimer.family
FROM work_claimer
WHERE work_claimer.claimed_at < ?;
-- before_us

-- work.page_of_old
SELECT work_item.id, work_item.family, work_item.subject_kind, work_item.subject_id, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.finished_at
FROM work_item
WHERE work_item.id > ? AND work_item.id < ?
ORDER BY work_item.id
LIMIT ? OFFSET ?;
-- after, before, rows, 0

-- work.plain_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids);
-- ids (rows as JSON)

-- work.recent_claimers
SELECT work_claimer.owner, max(work_claimer.claimed_at) AS claimed_at
FROM work_claimer
WHERE work_claimer.claimed_at > ?
GROUP BY work_claimer.owner
ORDER BY work_claimer.owner;
-- after_us

-- work.renew
UPDATE work_item
SET lease_until=leases.until_us, updated_at=?
FROM (SELECT json_extract(leases_json.value, '$[0]') AS id, json_extract(leases_json.value, '$[1]') AS until_us
FROM json_each(?) AS leases_json) AS leases
WHERE work_item.id = leases.id;
-- now_us, leases (rows as JSON)

-- work.request_cancel
UPDATE work_item
SET cancel_requested=?, updated_at=?
FROM (SELECT json_extract(ids_json.value, '$[0]') AS id
FROM json_each(?) AS ids_json) AS ids
WHERE work_item.id = ids.id;
-- 1, now_us, ids (rows as JSON)

-- work.save_claimer
UPDATE work_claimer
SET token=?, items=?, claimed_at=?
WHERE work_claimer.owner = ? AND work_claimer.family = ?;
-- new_token, new_items, now_us, claimer, claimed_family

-- work.save_walk
UPDATE work_retention
SET passed=?, moved=(work_retention.moved + ?), seen_since=?, overdue_since=?, walked_at=?
WHERE work_retention.name = ?;
-- now_passed, more, now_seen, now_overdue, now_walked, walk

-- work.settle
UPDATE work_item
SET state=ends.state, run_after=ends.run_after, claims=ends.claims, failures=ends.failures, first_failed_at=ends.first_failed_at, deferrals=ends.deferrals, first_deferred_at=ends.first_deferred_at, expiries=ends.expiries, alone=?, failure_class=ends.failure_class, summary=ends.summary, updated_at=?, finished_at=ends.finished_at
FROM (SELECT json_extract(ends_json.value, '$[0]') AS id, json_extract(ends_json.value, '$[1]') AS state, json_extract(ends_json.value, '$[2]') AS run_after, json_extract(ends_json.value, '$[3]') AS claims, json_extract(ends_json.value, '$[4]') AS failures, json_extract(ends_json.value, '$[5]') AS first_failed_at, json_extract(ends_json.value, '$[6]') AS deferrals, json_extract(ends_json.value, '$[7]') AS first_deferred_at, json_extract(ends_json.value, '$[8]') AS expiries, json_extract(ends_json.value, '$[9]') AS failure_class, json_extract(ends_json.value, '$[10]') AS summary, json_extract(ends_json.value, '$[11]') AS finished_at
FROM json_each(?) AS ends_json) AS ends
WHERE work_item.id = ends.id;
-- 0, now_us, ends (rows as JSON)

-- work.still_running
SELECT work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.lease_until, work_item.id, work_item.source_lane, work_item.target_lane
FROM (SELECT json_extract(claimed_json.value, '$[0]') AS id, json_extract(claimed_json.value, '$[1]') AS token
FROM json_each(?) AS claimed_json) AS claimed
JOIN work_item ON work_item.id = claimed.id AND work_item.lease_token = claimed.token AND work_item.state = ?;
-- claimed (rows as JSON), 'processing'

-- work.succeed
UPDATE work_item
SET state='succeeded', expiries=0, alone=0, failure_class=NULL, summary=ends.summary, updated_at=?, finished_at=?
FROM (SELECT json_extract(ends_json.value, '$[0]') AS id, json_extract(ends_json.value, '$[1]') AS summary
FROM json_each(?) AS ends_json) AS ends
WHERE work_item.id = ends.id;
-- now_us, now_us, ends (rows as JSON)

-- work.successor
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.predecessor = ?;
-- predecessor

-- work.successor_in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM work_item_history
WHERE work_item_history.predecessor = ?;
-- predecessor

-- work.suspects
SELECT work_ready.item_id
FROM work_ready
WHERE work_ready.family = ? AND work_ready.shelf = 1
LIMIT 1 OFFSET ?;
-- family, 0

-- work.sweep
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.id > ?
ORDER BY work_item.id
LIMIT ? OFFSET ?;
-- after, rows, 0

-- work.take
UPDATE work_item
SET state=?, claims=(work_item.claims + ?), expiries=taken.expiries, alone=?, lease_owner=?, lease_token=?, lease_until=?, ownership_epoch=?, updated_at=?
FROM (SELECT json_extract(taken_json.value, '$[0]') AS id, json_extract(taken_json.value, '$[1]') AS expiries
FROM json_each(?) AS taken_json) AS taken
WHERE work_item.id = taken.id;
-- 'processing', 1, alone, owner, token, until_us, epoch, now_us, taken (rows as JSON)

-- work.under_way
SELECT work_item.subject_id
FROM work_item
WHERE work_item.subject_id IN (SELECT subjects.id
FROM (SELECT json_extract(subjects_json.value, '$[0]') AS id
FROM json_each(?) AS subjects_json) AS subjects) AND (work_item.state NOT IN (?, ?, ?, ?));
-- subjects (rows as JSON), 'cancelled', 'dead', 'skipped', 'succeeded'

-- work.waiting
SELECT scopes.org, scopes.installation
FROM (SELECT json_extract(scopes_json.value, '$[0]') AS org, json_extract(scopes_json.value, '$[1]') AS installation, json_extract(scopes_json.value, '$[2]') AS since
FROM json_each(?) AS scopes_json) AS scopes
WHERE (SELECT work_ready.due
FROM work_ready
WHERE work_ready.family = ? AND work_ready.shelf = ? AND work_ready.org = scopes.org AND work_ready.installation = scopes.installation AND work_ready.due >= scopes.since
ORDER BY work_ready.due
LIMIT 1 OFFSET ?) <= (SELECT max(now_us, doonce_host_us())
FROM doonce_clock
WHERE id = 1);
-- scopes (rows as JSON), family, shelf, 0

-- work.walk
SELECT work_retention.name, work_retention.passed, work_retention.moved, work_retention.seen_since, work_retention.overdue_since, work_retention.walked_at
FROM work_retention
WHERE work_retention.name = ?;
-- walk
