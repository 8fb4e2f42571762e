-- Every statement on postgresql. Written by `make snapshots`; review it like code.

-- catalog.installations
SELECT DISTINCT view_publication.org, view_publication.installation
FROM view_publication
ORDER BY view_publication.org, view_publication.installation;
-- no parameters

-- catalog.latest
SELECT view_publication.org, view_publication.installation, view_publication.capability, view_publication.sequence, view_publication.digest, view_publication.published_at
FROM view_publication
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[])) AS scopes(org, installation, capability) ON view_publication.org = scopes.org AND view_publication.installation = scopes.installation AND view_publication.capability = scopes.capability AND view_publication.sequence = (SELECT max(view_publication.sequence) AS max_1
FROM view_publication
WHERE view_publication.org = scopes.org AND view_publication.installation = scopes.installation AND view_publication.capability = scopes.capability);
-- scopes[0], scopes[1], scopes[2]

-- catalog.load
SELECT binding_view.document
FROM binding_view
WHERE binding_view.digest = $1::VARCHAR COLLATE "C";
-- address

-- catalog.published
SELECT DISTINCT view_publication.org, view_publication.installation, view_publication.capability, view_publication.digest
FROM view_publication
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[])) AS pairs(org, installation, capability, digest) ON view_publication.org = pairs.org AND view_publication.installation = pairs.installation AND view_publication.capability = pairs.capability AND view_publication.digest = pairs.digest;
-- pairs[0], pairs[1], pairs[2], pairs[3]

-- catalog.scopes
SELECT DISTINCT view_publication.org, view_publication.installation, view_publication.capability
FROM view_publication
ORDER BY view_publication.org, view_publication.installation, view_publication.capability;
-- no parameters

-- catch_ups.attach
UPDATE ingress_gap
SET catch_up_id=$1::VARCHAR COLLATE "C"
WHERE ingress_gap.org = $2::VARCHAR COLLATE "C" AND ingress_gap.installation = $3::VARCHAR COLLATE "C" AND ingress_gap.capability = $4::VARCHAR COLLATE "C" AND ingress_gap.webhook = $5::VARCHAR COLLATE "C" AND ingress_gap.sequence = $6::BIGINT;
-- new_catch_up, the_org, the_installation, the_capability, the_webhook, the_sequence

-- catch_ups.gaps_of_route
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.org = $1::VARCHAR COLLATE "C" AND ingress_gap.installation = $2::VARCHAR COLLATE "C" AND ingress_gap.capability = $3::VARCHAR COLLATE "C" AND ingress_gap.webhook = $4::VARCHAR COLLATE "C"
ORDER BY ingress_gap.sequence;
-- the_org, the_installation, the_capability, the_webhook

-- catch_ups.live_work
SELECT work_item.id
FROM work_item
WHERE work_item.subject_id = $1::VARCHAR COLLATE "C" AND (work_item.state NOT IN ($2::VARCHAR COLLATE "C", $3::VARCHAR COLLATE "C", $4::VARCHAR COLLATE "C", $5::VARCHAR COLLATE "C"));
-- subject, 'cancelled', 'dead', 'skipped', 'succeeded'

-- catch_ups.lock
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.id = $1::VARCHAR COLLATE "C"
FOR UPDATE;
-- the_id

-- catch_ups.move
UPDATE ingress_catch_up
SET covered_since=$1::BIGINT, covered_until=$2::BIGINT, passes=$3::BIGINT, from_at=$4::BIGINT, since_at=$5::BIGINT, until_at=$6::BIGINT, losses=$7::BIGINT, page_id=$8::VARCHAR COLLATE "C", page_number=$9::BIGINT, page_cursor=$10::VARCHAR COLLATE "C", pages=$11::BIGINT, items=$12::BIGINT, events=$13::BIGINT, updated_at=$14::BIGINT
WHERE ingress_catch_up.id = $15::VARCHAR COLLATE "C";
-- new_covered_since, new_covered_until, new_passes, new_from_at, new_since_at, new_until_at, new_losses, new_page_id, new_page_number, new_page_cursor, new_pages, new_items, new_events, now_us, the_id

-- catch_ups.of_pages
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.page_id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- catch_ups.read_with
SELECT ingress_page.id
FROM ingress_page
WHERE ingress_page.catch_up_id = $1::VARCHAR COLLATE "C" AND ingress_page.pass = $2::BIGINT AND ingress_page.cursor_digest = $3::VARCHAR COLLATE "C";
-- the_id, the_pass, the_cursor

-- catch_ups.unattended
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.closed_at IS NULL AND ingress_gap.catch_up_id IS NULL AND (ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence) > ($1::VARCHAR COLLATE "C", $2::VARCHAR COLLATE "C", $3::VARCHAR COLLATE "C", $4::VARCHAR COLLATE "C", $5::BIGINT)
ORDER BY ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence
LIMIT $6::BIGINT;
-- after_org, after_installation, after_capability, after_webhook, after_sequence, rows

-- catching_up.gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS BIGINT[])) AS wanted(org, installation, capability, webhook, sequence) ON ingress_gap.org = wanted.org AND ingress_gap.installation = wanted.installation AND ingress_gap.capability = wanted.capability AND ingress_gap.webhook = wanted.webhook AND ingress_gap.sequence = wanted.sequence;
-- wanted[0], wanted[1], wanted[2], wanted[3], wanted[4]

-- catching_up.stored
SELECT ingress_page.id
FROM ingress_page
WHERE ingress_page.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- clock_mark.raise
UPDATE doonce_clock
SET now_us=greatest(doonce_clock.now_us, (SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint))
WHERE doonce_clock.id = $1::BIGINT;
-- 1

-- clock_mark.read
SELECT doonce_clock.now_us, (SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint) AS clock_us
FROM doonce_clock
WHERE doonce_clock.id = $1::BIGINT;
-- 1

-- clock_mark.set
UPDATE doonce_clock
SET now_us=(SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
WHERE doonce_clock.id = $1::BIGINT;
-- 1

-- commands.conflicts
SELECT handoff_conflict.key, handoff_conflict.slot, handoff_conflict.asked
FROM handoff_conflict
WHERE handoff_conflict.key IN (SELECT keys.key
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS keys(key));
-- keys[0]

-- commands.find_handoffs
SELECT handoff.key, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at, command.id AS applied
FROM handoff
LEFT OUTER
JOIN command ON command.id = handoff.command_id
WHERE handoff.key IN (SELECT keys.key
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS keys(key))
ORDER BY handoff.key;
-- keys[0]

-- commands.load
SELECT command.id, command.origin, command.origin_key, command.org, command.installation, command.capability, command.operation, command.local_ref, command.outbox_id, command.payload_digest, command.payload, command.remote_id, command.view_digest, command.principal_id, command.generation, command.link_id, command.link_version, command.method, command.request_origin, command.target, command.headers, command.body, command.body_digest, command.idempotency_key, command.accepted_at
FROM command
WHERE command.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- commands.load_ends
SELECT command_end.command_id, command_end.ended_as, command_end.attempt_id, command_end.result, command_end.reason, command_end.recorded_at
FROM command_end
WHERE command_end.command_id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- commands.lock_handoffs
SELECT handoff.key, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at, command.id AS applied
FROM handoff
LEFT OUTER
JOIN command ON command.id = handoff.command_id
WHERE handoff.key IN (SELECT keys.key
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS keys(key))
ORDER BY handoff.key
FOR UPDATE OF handoff;
-- keys[0]

-- completions.attempts
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.reason, effect_attempt.ended_at
FROM effect_attempt
WHERE effect_attempt.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- conformance.facts
SELECT (SELECT count(*) AS count_1
FROM handoff
WHERE handoff.key = $1::VARCHAR COLLATE "C") AS anon_1, (SELECT count(*) AS count_2
FROM (SELECT command.id AS id
FROM command
WHERE command.origin_key = $1::VARCHAR COLLATE "C") AS anon_3) AS anon_2, (SELECT count(*) AS count_3
FROM work_item
WHERE work_item.subject_id IN (SELECT command.id
FROM command
WHERE command.origin_key = $1::VARCHAR COLLATE "C")) AS anon_4;
-- key

-- durability.end_frozen
SELECT pg_terminate_backend(pg_stat_activity.pid) AS pg_terminate_backend_1
FROM pg_stat_activity
WHERE pg_stat_activity.datname = current_database() AND pg_stat_activity.usename = current_user AND pg_stat_activity.application_name = $1::VARCHAR COLLATE "C" AND pg_stat_activity.state = 'active' AND pg_stat_activity.wait_event = 'ClientRead' AND state_change < clock_timestamp() - $2::BIGINT * interval '1 millisecond';
-- application_name, for_ms

-- durability.settings
SELECT pg_is_in_recovery() AS in_recovery, current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes, current_setting('synchronous_commit') AS synchronous_commit, current_setting('synchronous_standby_names') AS synchronous_standby_names, current_setting('transaction_read_only') AS transaction_read_only;
-- no parameters

-- effects.attempts_by_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at, effect_attempt.status
FROM effect_attempt
WHERE effect_attempt.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- effects.bump_evidence
UPDATE effect_attempt
SET evidence_version=(effect_attempt.evidence_version + $1::BIGINT)
FROM unnest(CAST($2::VARCHAR AS TEXT[])) AS ids(id)
WHERE effect_attempt.id = ids.id;
-- 1, ids[0]

-- effects.dispositions
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM disposition
WHERE disposition.attempt_id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- effects.end
UPDATE effect_attempt
SET state=$1::VARCHAR COLLATE "C", outcome=ends.outcome, reason=ends.reason, ended_at=$2::BIGINT, settled_by=ends.settled_by, effect_free=ends.effect_free, status=ends.status, receipt=ends.receipt, result=ends.result
FROM unnest(CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS TEXT[]), CAST($6::VARCHAR AS BIGINT[]), CAST($7::VARCHAR AS TEXT[]), CAST($8::VARCHAR AS BIGINT[]), CAST($9::VARCHAR AS TEXT[]), CAST($10::VARCHAR AS TEXT[])) AS ends(id, outcome, reason, effect_free, settled_by, status, receipt, result)
WHERE effect_attempt.id = ends.id AND effect_attempt.outcome IS NULL;
-- 'ended', now_us, ends[0], ends[1], ends[2], ends[3], ends[4], ends[5], ends[6], ends[7]

-- effects.evidence_of
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM attempt_evidence
WHERE attempt_evidence.attempt_id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY attempt_evidence.attempt_id, attempt_evidence.recorded_at, attempt_evidence.id;
-- ids[0]

-- effects.give_successor
UPDATE disposition
SET evidence_version=$1::BIGINT, successor_item_id=$2::VARCHAR COLLATE "C"
WHERE disposition.attempt_id = $3::VARCHAR COLLATE "C" AND disposition.successor_item_id IS NULL;
-- version, successor, attempt

-- effects.lineage_of
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM disposition
WHERE disposition.successor_item_id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- effects.lock_attempts
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at
FROM effect_attempt
WHERE effect_attempt.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY effect_attempt.id
FOR UPDATE;
-- ids[0]

-- effects.mark
UPDATE effect_attempt
SET state=$1::VARCHAR COLLATE "C", request_digest=marks.request_digest, mark_nonce=marks.nonce, dispatched_at=$2::BIGINT, horizon_at=marks.horizon_us
FROM unnest(CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS BIGINT[]), CAST($6::VARCHAR AS TEXT[])) AS marks(id, nonce, horizon_us, request_digest)
WHERE effect_attempt.id = marks.id AND effect_attempt.state = $7::VARCHAR COLLATE "C";
-- 'dispatched', now_us, marks[0], marks[1], marks[2], marks[3], 'prepared'

-- effects.of_subjects
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at
FROM effect_attempt
WHERE effect_attempt.subject_id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY effect_attempt.subject_id, effect_attempt.number;
-- ids[0]

-- events.load
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM event
WHERE event.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- events.load_objects
SELECT event_object.event_id, event_object.attempt_id, event_object.sealed, event_object.key_id, event_object.read_at
FROM event_object
WHERE event_object.event_id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- events.winners
SELECT event.id
FROM event
WHERE event.identity IN (SELECT keys.identity
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS keys(identity))
ORDER BY event.identity
FOR UPDATE;
-- keys[0]

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
WHERE database_incarnation.declaration = $1::VARCHAR COLLATE "C";
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
LIMIT $1::INTEGER;
-- 1

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
WHERE webhook_secret.org = $1::VARCHAR COLLATE "C" AND webhook_secret.installation = $2::VARCHAR COLLATE "C" AND webhook_secret.capability = $3::VARCHAR COLLATE "C" AND webhook_secret.webhook = $4::VARCHAR COLLATE "C" AND webhook_secret.ended_at IS NULL
ORDER BY webhook_secret.created_at DESC, webhook_secret.id DESC;
-- the_org, the_installation, the_capability, the_webhook

-- ingress.at_rest
SELECT ingress_receipt.id
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id)) AND NOT (EXISTS (SELECT *
FROM work_item
WHERE work_item.subject_id = ingress_receipt.id AND (work_item.state NOT IN ($2::VARCHAR COLLATE "C", $3::VARCHAR COLLATE "C", $4::VARCHAR COLLATE "C", $5::VARCHAR COLLATE "C"))));
-- ids[0], 'cancelled', 'dead', 'skipped', 'succeeded'

-- ingress.close_gap
UPDATE ingress_gap
SET closed_at=$1::BIGINT, closed_by=$2::VARCHAR COLLATE "C", reason=$3::VARCHAR COLLATE "C"
WHERE ingress_gap.org = $4::VARCHAR COLLATE "C" AND ingress_gap.installation = $5::VARCHAR COLLATE "C" AND ingress_gap.capability = $6::VARCHAR COLLATE "C" AND ingress_gap.webhook = $7::VARCHAR COLLATE "C" AND ingress_gap.sequence = $8::BIGINT AND ingress_gap.closed_at IS NULL;
-- now_us, who, why, the_org, the_installation, the_capability, the_webhook, the_sequence

-- ingress.count_rejections
UPDATE ingress_rejection
SET count=(ingress_rejection.count + counted.more), last_at=$1::BIGINT
FROM unnest(CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS TEXT[]), CAST($6::VARCHAR AS TEXT[]), CAST($7::VARCHAR AS BIGINT[])) AS counted(org, installation, capability, webhook, reason, more)
WHERE ingress_rejection.org = counted.org AND ingress_rejection.installation = counted.installation AND ingress_rejection.capability = counted.capability AND ingress_rejection.webhook = counted.webhook AND ingress_rejection.reason = counted.reason;
-- now_us, counted[0], counted[1], counted[2], counted[3], counted[4], counted[5]

-- ingress.end_secret
UPDATE webhook_secret
SET sealed=$1::BYTEA, ended_at=$2::BIGINT
WHERE webhook_secret.org = $3::VARCHAR COLLATE "C" AND webhook_secret.installation = $4::VARCHAR COLLATE "C" AND webhook_secret.capability = $5::VARCHAR COLLATE "C" AND webhook_secret.webhook = $6::VARCHAR COLLATE "C" AND webhook_secret.id = $7::VARCHAR COLLATE "C" AND webhook_secret.ended_at IS NULL;
-- nothing, now_us, the_org, the_installation, the_capability, the_webhook, the_id

-- ingress.erase_pages
UPDATE ingress_page
SET sealed=$1::BYTEA
WHERE ingress_page.id IN (SELECT ids.id
FROM unnest(CAST($2::VARCHAR AS TEXT[])) AS ids(id));
-- nothing, ids[0]

-- ingress.erase_quarantined
UPDATE ingress_quarantine
SET sealed=$1::BYTEA
WHERE ingress_quarantine.receipt_id IN (SELECT ids.id
FROM unnest(CAST($2::VARCHAR AS TEXT[])) AS ids(id));
-- nothing, ids[0]

-- ingress.erase_receipts
UPDATE ingress_receipt
SET sealed=$1::BYTEA
WHERE ingress_receipt.id IN (SELECT ids.id
FROM unnest(CAST($2::VARCHAR AS TEXT[])) AS ids(id));
-- nothing, ids[0]

-- ingress.gap
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.org = $1::VARCHAR COLLATE "C" AND ingress_gap.installation = $2::VARCHAR COLLATE "C" AND ingress_gap.capability = $3::VARCHAR COLLATE "C" AND ingress_gap.webhook = $4::VARCHAR COLLATE "C" AND ingress_gap.sequence = $5::BIGINT;
-- the_org, the_installation, the_capability, the_webhook, the_sequence

-- ingress.gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[])) AS routes(org, installation, capability, webhook) ON ingress_gap.org = routes.org AND ingress_gap.installation = routes.installation AND ingress_gap.capability = routes.capability AND ingress_gap.webhook = routes.webhook
ORDER BY ingress_gap.sequence;
-- routes[0], routes[1], routes[2], routes[3]

-- ingress.keys_in_use
SELECT DISTINCT webhook_secret.key_id
FROM webhook_secret
WHERE webhook_secret.ended_at IS NULL;
-- no parameters

-- ingress.load
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- ingress.lock_identities
SELECT ingress_identity.identity, ingress_identity.receipt_id, ingress_identity.body_digest, ingress_identity.nonce, ingress_identity.received_at, ingress_receipt.id AS applied
FROM ingress_identity
LEFT OUTER
JOIN ingress_receipt ON ingress_receipt.id = ingress_identity.receipt_id
WHERE ingress_identity.identity IN (SELECT keys.identity
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS keys(identity))
ORDER BY ingress_identity.identity
FOR UPDATE OF ingress_identity;
-- keys[0]

-- ingress.lock_receipts
SELECT ingress_receipt.id, CASE WHEN (ingress_receipt.sealed IS NULL) THEN $1::INTEGER ELSE $2::INTEGER END AS kept
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT ids.id
FROM unnest(CAST($3::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY ingress_receipt.id
FOR UPDATE;
-- 0, 1, ids[0]

-- ingress.old_pages
SELECT ingress_page.id
FROM ingress_page
WHERE ingress_page.sealed IS NOT NULL AND ingress_page.received_at < $1::BIGINT
ORDER BY ingress_page.received_at, ingress_page.id
LIMIT $2::BIGINT;
-- before_us, rows

-- ingress.old_quarantined
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine
WHERE ingress_quarantine.sealed IS NOT NULL AND ingress_quarantine.received_at < $1::BIGINT
ORDER BY ingress_quarantine.received_at, ingress_quarantine.receipt_id
LIMIT $2::BIGINT;
-- before_us, rows

-- ingress.old_receipts
SELECT ingress_receipt.id
FROM ingress_receipt
WHERE ingress_receipt.sealed IS NOT NULL AND ingress_receipt.received_at < $1::BIGINT AND NOT (EXISTS (SELECT *
FROM work_item
WHERE work_item.subject_id = ingress_receipt.id AND (work_item.state NOT IN ($3::VARCHAR COLLATE "C", $4::VARCHAR COLLATE "C", $5::VARCHAR COLLATE "C", $6::VARCHAR COLLATE "C"))))
ORDER BY ingress_receipt.received_at, ingress_receipt.id
LIMIT $2::BIGINT;
-- before_us, rows, 'cancelled', 'dead', 'skipped', 'succeeded'

-- ingress.open_gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.closed_at IS NULL
ORDER BY ingress_gap.opened_at, ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook
LIMIT $1::INTEGER;
-- 500

-- ingress.open_gaps_in_scope
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap
WHERE ingress_gap.closed_at IS NULL AND ingress_gap.org = $1::VARCHAR COLLATE "C" AND ingress_gap.installation = $2::VARCHAR COLLATE "C"
ORDER BY ingress_gap.opened_at, ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook
LIMIT $3::INTEGER;
-- the_org, the_installation, 500

-- ingress.quarantined
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.body_digest, ingress_quarantine.receipt_id
FROM ingress_quarantine
WHERE ingress_quarantine.identity IN (SELECT keys.identity
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS keys(identity));
-- keys[0]

-- ingress.rejections
SELECT ingress_rejection.org, ingress_rejection.installation, ingress_rejection.capability, ingress_rejection.webhook, ingress_rejection.reason, ingress_rejection.count, ingress_rejection.first_at, ingress_rejection.last_at
FROM ingress_rejection
ORDER BY ingress_rejection.last_at DESC;
-- no parameters

-- ingress.sealed
SELECT ingress_receipt.sealed, ingress_receipt.key_id
FROM ingress_receipt
WHERE ingress_receipt.id = $1::VARCHAR COLLATE "C" AND ingress_receipt.sealed IS NOT NULL;
-- the_receipt

-- ingress.sealed_page
SELECT ingress_page.sealed, ingress_page.key_id
FROM ingress_page
WHERE ingress_page.id = $1::VARCHAR COLLATE "C" AND ingress_page.sealed IS NOT NULL;
-- the_receipt

-- ingress.sealed_quarantined
SELECT ingress_quarantine.sealed, ingress_quarantine.key_id
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id = $1::VARCHAR COLLATE "C" AND ingress_quarantine.sealed IS NOT NULL;
-- the_receipt

-- ingress.widen_gaps
UPDATE ingress_gap
SET losses=(ingress_gap.losses + wider.more), opened_at=CASE WHEN (ingress_gap.opened_at > wider.since_us) THEN wider.since_us ELSE ingress_gap.opened_at END, last_at=$1::BIGINT
FROM unnest(CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS TEXT[]), CAST($6::VARCHAR AS BIGINT[]), CAST($7::VARCHAR AS BIGINT[]), CAST($8::VARCHAR AS BIGINT[])) AS wider(org, installation, capability, webhook, sequence, more, since_us)
WHERE ingress_gap.org = wider.org AND ingress_gap.installation = wider.installation AND ingress_gap.capability = wider.capability AND ingress_gap.webhook = wider.webhook AND ingress_gap.sequence = wider.sequence;
-- now_us, wider[0], wider[1], wider[2], wider[3], wider[4], wider[5], wider[6]

-- lanes.drop_entries
DELETE
FROM work_lane_entry
WHERE (work_lane_entry.lane, work_lane_entry.position) IN (SELECT entries.lane, entries.position
FROM unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS BIGINT[])) AS entries(lane, position));
-- entries[0], entries[1]

-- lanes.entries_at
SELECT work_lane_entry.lane, work_lane_entry.position, work_lane_entry.item_id
FROM work_lane_entry
WHERE (work_lane_entry.lane, work_lane_entry.position) IN (SELECT entries.lane, entries.position
FROM unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS BIGINT[])) AS entries(lane, position));
-- entries[0], entries[1]

-- lanes.inherit_entries
UPDATE work_lane_entry
SET item_id=entries.item_id, due=entries.due
FROM unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS BIGINT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS BIGINT[])) AS entries(lane, position, item_id, due)
WHERE work_lane_entry.lane = entries.lane AND work_lane_entry.position = entries.position;
-- entries[0], entries[1], entries[2], entries[3]

-- lanes.lock
SELECT work_lane.lane, work_lane.policy, work_lane.tail, work_lane.holder, work_lane.hold_until, work_lane.nominee, work_lane.nominee_due
FROM work_lane
WHERE work_lane.lane IN (SELECT lanes.lane
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS lanes(lane))
ORDER BY work_lane.lane
FOR UPDATE;
-- lanes[0]

-- lanes.next_in_source
SELECT chosen.lane, work_item.id, work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.state, work_item.run_after, work_item.source_lane, work_item.target_lane, work_item.target_position
FROM (SELECT lanes.lane AS lane, (SELECT work_lane_entry.item_id
FROM work_lane_entry
WHERE work_lane_entry.lane = lanes.lane
ORDER BY work_lane_entry.position
LIMIT $1::INTEGER) AS item_id
FROM unnest(CAST($2::VARCHAR AS TEXT[])) AS lanes(lane)) AS chosen
JOIN work_item ON work_item.id = chosen.item_id;
-- 1, lanes[0]

-- lanes.next_in_target
SELECT chosen.lane, work_item.id, work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.state, work_item.run_after, work_item.source_lane, work_item.target_lane, work_item.target_position
FROM (SELECT lanes.lane AS lane, (SELECT work_lane_entry.item_id
FROM work_lane_entry
WHERE work_lane_entry.lane = lanes.lane AND work_lane_entry.open = $1::BIGINT
ORDER BY work_lane_entry.open, work_lane_entry.due, work_lane_entry.position
LIMIT $2::INTEGER) AS item_id
FROM unnest(CAST($3::VARCHAR AS TEXT[])) AS lanes(lane)) AS chosen
JOIN work_item ON work_item.id = chosen.item_id;
-- 1, 1, lanes[0]

-- lanes.save
UPDATE work_lane
SET tail=lanes.tail, holder=lanes.holder, hold_until=lanes.hold_until, nominee=lanes.nominee, nominee_due=lanes.due
FROM unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS BIGINT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS BIGINT[]), CAST($5::VARCHAR AS TEXT[]), CAST($6::VARCHAR AS BIGINT[])) AS lanes(lane, tail, holder, hold_until, nominee, due)
WHERE work_lane.lane = lanes.lane;
-- lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5]

-- lanes.set_entries
UPDATE work_lane_entry
SET open=entries.open, due=entries.due
FROM unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS BIGINT[]), CAST($3::VARCHAR AS BIGINT[]), CAST($4::VARCHAR AS BIGINT[])) AS entries(lane, position, open, due)
WHERE work_lane_entry.lane = entries.lane AND work_lane_entry.position = entries.position;
-- entries[0], entries[1], entries[2], entries[3]

-- links.find
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[])) AS keys(org, installation, kind, local_ref) ON remote_link.org = keys.org AND remote_link.installation = keys.installation AND remote_link.kind = keys.kind AND remote_link.local_ref = keys.local_ref
WHERE remote_link.slot = $5::VARCHAR COLLATE "C";
-- keys[0], keys[1], keys[2], keys[3], ''

-- links.find_remote
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS TEXT[])) AS keys(org, installation, principal_id, kind, remote_id) ON remote_link.org = keys.org AND remote_link.installation = keys.installation AND remote_link.principal_id = keys.principal_id AND remote_link.kind = keys.kind AND remote_link.remote_id = keys.remote_id
WHERE remote_link.slot = $6::VARCHAR COLLATE "C";
-- keys[0], keys[1], keys[2], keys[3], keys[4], ''

-- links.get
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
WHERE remote_link.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY remote_link.id;
-- ids[0]

-- links.lock
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
WHERE remote_link.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY remote_link.id
FOR UPDATE;
-- ids[0]

-- links.lock_local
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[])) AS keys(org, installation, kind, local_ref) ON remote_link.org = keys.org AND remote_link.installation = keys.installation AND remote_link.kind = keys.kind AND remote_link.local_ref = keys.local_ref
WHERE remote_link.slot = $5::VARCHAR COLLATE "C"
ORDER BY remote_link.id
FOR UPDATE OF remote_link;
-- keys[0], keys[1], keys[2], keys[3], ''

-- links.lock_remote
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS TEXT[])) AS keys(org, installation, principal_id, kind, remote_id) ON remote_link.org = keys.org AND remote_link.installation = keys.installation AND remote_link.principal_id = keys.principal_id AND remote_link.kind = keys.kind AND remote_link.remote_id = keys.remote_id
WHERE remote_link.slot = $6::VARCHAR COLLATE "C"
ORDER BY remote_link.id
FOR UPDATE OF remote_link;
-- keys[0], keys[1], keys[2], keys[3], keys[4], ''

-- links.move
UPDATE remote_link
SET slot=links.slot, state=links.state, version=(remote_link.version + $1::BIGINT), updated_at=$2::BIGINT
FROM unnest(CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS BIGINT[]), CAST($5::VARCHAR AS TEXT[]), CAST($6::VARCHAR AS TEXT[])) AS links(id, version, slot, state)
WHERE remote_link.id = links.id AND remote_link.version = links.version;
-- 1, now_us, links[0], links[1], links[2], links[3]

-- links.renew
UPDATE remote_link
SET generation=links.generation, version=(remote_link.version + $1::BIGINT), authority=links.authority, updated_at=$2::BIGINT
FROM unnest(CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS BIGINT[]), CAST($5::VARCHAR AS TEXT[])) AS links(id, generation, authority)
WHERE remote_link.id = links.id;
-- 1, now_us, links[0], links[1], links[2]

-- links.share
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM remote_link
WHERE remote_link.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY remote_link.id
FOR SHARE;
-- ids[0]

-- operate.attempt_evidence_by_attempt_id
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM attempt_evidence
WHERE attempt_evidence.attempt_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY attempt_evidence.recorded_at, attempt_evidence.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.attempt_evidence_by_id
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM attempt_evidence
WHERE attempt_evidence.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY attempt_evidence.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.binding_generation_by_principal_id
SELECT binding_generation.principal_id, binding_generation.generation, binding_generation.id, binding_generation.state, binding_generation.remote_subject, binding_generation.remote_tenant, binding_generation.created_at, binding_generation.ended_at, binding_generation.reason
FROM binding_generation
WHERE binding_generation.principal_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY binding_generation.generation
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.command_by_id
SELECT command.id, command.origin, command.origin_key, command.org, command.installation, command.capability, command.operation, command.local_ref, command.outbox_id, command.payload_digest, command.payload, command.remote_id, command.view_digest, command.principal_id, command.generation, command.link_id, command.link_version, command.method, command.request_origin, command.target, command.headers, command.body, command.body_digest, command.idempotency_key, command.accepted_at
FROM command
WHERE command.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY command.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.command_end_by_command_id
SELECT command_end.command_id, command_end.ended_as, command_end.attempt_id, command_end.result, command_end.reason, command_end.recorded_at
FROM command_end
WHERE command_end.command_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY command_end.command_id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.depth
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready
WHERE work_ready.family = $1::VARCHAR COLLATE "C"
LIMIT $2::BIGINT) AS bounded;
-- family, rows

-- operate.depth_in_scope
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready
WHERE work_ready.family = $1::VARCHAR COLLATE "C" AND work_ready.shelf = $2::BIGINT AND work_ready.org = $3::VARCHAR COLLATE "C" AND work_ready.installation = $4::VARCHAR COLLATE "C"
LIMIT $5::BIGINT) AS bounded;
-- family, 0, the_org, the_installation, rows

-- operate.disposition_by_attempt_id
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM disposition
WHERE disposition.attempt_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY disposition.recorded_at
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.effect_attempt_by_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.number, effect_attempt.work_id, effect_attempt.operation, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.token, effect_attempt.epoch, effect_attempt.generation, effect_attempt.link_version, effect_attempt.request_digest, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.horizon_at, effect_attempt.ended_at, effect_attempt.settled_by, effect_attempt.effect_free, effect_attempt.status, effect_attempt.receipt, effect_attempt.result, effect_attempt.evidence_version
FROM effect_attempt
WHERE effect_attempt.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY effect_attempt.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.effect_attempt_by_subject_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.number, effect_attempt.work_id, effect_attempt.operation, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.token, effect_attempt.epoch, effect_attempt.generation, effect_attempt.link_version, effect_attempt.request_digest, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.horizon_at, effect_attempt.ended_at, effect_attempt.settled_by, effect_attempt.effect_free, effect_attempt.status, effect_attempt.receipt, effect_attempt.result, effect_attempt.evidence_version
FROM effect_attempt
WHERE effect_attempt.subject_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY effect_attempt.prepared_at, effect_attempt.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.event_by_id
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM event
WHERE event.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY event.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.event_by_id_in_scope
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM event
WHERE event.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value)) AND event.org = $2::VARCHAR COLLATE "C" AND event.installation = $3::VARCHAR COLLATE "C"
ORDER BY event.id
LIMIT $4::INTEGER;
-- wanted[0], the_org, the_installation, 500

-- operate.event_by_receipt_id
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM event
WHERE event.receipt_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY event.position
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.event_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT event.org AS org, event.installation AS installation
FROM event
WHERE event.id > $1::VARCHAR COLLATE "C"
ORDER BY event.id DESC
LIMIT $2::BIGINT) AS looked_at;
-- after, rows

-- operate.event_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = $1::VARCHAR COLLATE "C" AND looked_at.installation = $2::VARCHAR COLLATE "C") THEN $3::INTEGER END) AS count_2
FROM (SELECT event.org AS org, event.installation AS installation
FROM event
WHERE event.id > $4::VARCHAR COLLATE "C"
ORDER BY event.id DESC
LIMIT $5::BIGINT) AS looked_at;
-- the_org, the_installation, 1, after, rows

-- operate.event_object_by_event_id
SELECT event_object.event_id, event_object.attempt_id, event_object.sealed, event_object.key_id, event_object.read_at
FROM event_object
WHERE event_object.event_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY event_object.event_id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.handoff_by_key
SELECT handoff.key, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM handoff
WHERE handoff.key IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY handoff.key
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.handoff_by_key_in_scope
SELECT handoff.key, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM handoff
WHERE handoff.key IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value)) AND handoff.org = $2::VARCHAR COLLATE "C" AND handoff.installation = $3::VARCHAR COLLATE "C"
ORDER BY handoff.key
LIMIT $4::INTEGER;
-- wanted[0], the_org, the_installation, 500

-- operate.handoff_by_outbox_id
SELECT handoff.key, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM handoff
WHERE handoff.outbox_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY handoff.recorded_at, handoff.key
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.handoff_by_receipt_id
SELECT handoff.key, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM handoff
WHERE handoff.receipt_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY handoff.key
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.handoff_conflict_by_key
SELECT handoff_conflict.key, handoff_conflict.slot, handoff_conflict.asked, handoff_conflict.mismatch, handoff_conflict.outbox_id, handoff_conflict.payload_digest, handoff_conflict.recorded_at
FROM handoff_conflict
WHERE handoff_conflict.key IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY handoff_conflict.recorded_at
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_catch_up_by_id
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY ingress_catch_up.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_catch_up_by_id_in_scope
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value)) AND ingress_catch_up.org = $2::VARCHAR COLLATE "C" AND ingress_catch_up.installation = $3::VARCHAR COLLATE "C"
ORDER BY ingress_catch_up.id
LIMIT $4::INTEGER;
-- wanted[0], the_org, the_installation, 500

-- operate.ingress_catch_up_by_page_id
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up
WHERE ingress_catch_up.page_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY ingress_catch_up.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_identity_by_identity
SELECT ingress_identity.identity, ingress_identity.receipt_id, ingress_identity.body_digest, ingress_identity.nonce, ingress_identity.received_at
FROM ingress_identity
WHERE ingress_identity.identity IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY ingress_identity.identity
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_page_by_catch_up_id
SELECT ingress_page.id, ingress_page.org, ingress_page.installation, ingress_page.capability, ingress_page.webhook, ingress_page.catch_up_id, ingress_page.pass, ingress_page.number, ingress_page.cursor_digest, ingress_page.view_digest, ingress_page.attempt_id, ingress_page.items, ingress_page.events, ingress_page.fault, ingress_page.body_digest, ingress_page.body_bytes, ingress_page.sealed, ingress_page.key_id, ingress_page.received_at
FROM ingress_page
WHERE ingress_page.catch_up_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY ingress_page.pass, ingress_page.number
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_page_by_id
SELECT ingress_page.id, ingress_page.org, ingress_page.installation, ingress_page.capability, ingress_page.webhook, ingress_page.catch_up_id, ingress_page.pass, ingress_page.number, ingress_page.cursor_digest, ingress_page.view_digest, ingress_page.attempt_id, ingress_page.items, ingress_page.events, ingress_page.fault, ingress_page.body_digest, ingress_page.body_bytes, ingress_page.sealed, ingress_page.key_id, ingress_page.received_at
FROM ingress_page
WHERE ingress_page.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY ingress_page.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_quarantine_by_identity
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM ingress_quarantine
WHERE ingress_quarantine.identity IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY ingress_quarantine.received_at, ingress_quarantine.receipt_id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_quarantine_by_receipt_id
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY ingress_quarantine.receipt_id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_quarantine_by_receipt_id_in_scope
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value)) AND ingress_quarantine.org = $2::VARCHAR COLLATE "C" AND ingress_quarantine.installation = $3::VARCHAR COLLATE "C"
ORDER BY ingress_quarantine.receipt_id
LIMIT $4::INTEGER;
-- wanted[0], the_org, the_installation, 500

-- operate.ingress_quarantine_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT ingress_quarantine.org AS org, ingress_quarantine.installation AS installation
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id > $1::VARCHAR COLLATE "C"
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT $2::BIGINT) AS looked_at;
-- after, rows

-- operate.ingress_quarantine_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = $1::VARCHAR COLLATE "C" AND looked_at.installation = $2::VARCHAR COLLATE "C") THEN $3::INTEGER END) AS count_2
FROM (SELECT ingress_quarantine.org AS org, ingress_quarantine.installation AS installation
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id > $4::VARCHAR COLLATE "C"
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT $5::BIGINT) AS looked_at;
-- the_org, the_installation, 1, after, rows

-- operate.ingress_receipt_by_id
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY ingress_receipt.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.ingress_receipt_by_id_in_scope
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM ingress_receipt
WHERE ingress_receipt.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value)) AND ingress_receipt.org = $2::VARCHAR COLLATE "C" AND ingress_receipt.installation = $3::VARCHAR COLLATE "C"
ORDER BY ingress_receipt.id
LIMIT $4::INTEGER;
-- wanted[0], the_org, the_installation, 500

-- operate.ingress_receipt_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT ingress_receipt.org AS org, ingress_receipt.installation AS installation
FROM ingress_receipt
WHERE ingress_receipt.id > $1::VARCHAR COLLATE "C"
ORDER BY ingress_receipt.id DESC
LIMIT $2::BIGINT) AS looked_at;
-- after, rows

-- operate.ingress_receipt_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = $1::VARCHAR COLLATE "C" AND looked_at.installation = $2::VARCHAR COLLATE "C") THEN $3::INTEGER END) AS count_2
FROM (SELECT ingress_receipt.org AS org, ingress_receipt.installation AS installation
FROM ingress_receipt
WHERE ingress_receipt.id > $4::VARCHAR COLLATE "C"
ORDER BY ingress_receipt.id DESC
LIMIT $5::BIGINT) AS looked_at;
-- the_org, the_installation, 1, after, rows

-- operate.newer
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready
WHERE work_ready.family = $1::VARCHAR COLLATE "C" AND work_ready.shelf > 1
LIMIT $2::BIGINT) AS bounded;
-- family, rows

-- operate.newer_in_scope
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready
WHERE work_ready.family = $1::VARCHAR COLLATE "C" AND work_ready.shelf > 1 AND work_ready.org = $2::VARCHAR COLLATE "C" AND work_ready.installation = $3::VARCHAR COLLATE "C"
LIMIT $4::BIGINT) AS bounded;
-- family, the_org, the_installation, rows

-- operate.newest_quarantined
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT $1::INTEGER;
-- 20

-- operate.newest_quarantined_in_scope
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine
WHERE ingress_quarantine.org = $1::VARCHAR COLLATE "C" AND ingress_quarantine.installation = $2::VARCHAR COLLATE "C"
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT $3::INTEGER;
-- the_org, the_installation, 20

-- operate.oldest
SELECT min((SELECT work_ready.due
FROM work_ready
WHERE work_ready.family = $1::VARCHAR COLLATE "C" AND work_ready.shelf = $2::BIGINT AND work_ready.org = scopes.org AND work_ready.installation = scopes.installation
ORDER BY work_ready.due
LIMIT $3::INTEGER)) AS min_1
FROM unnest(CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS TEXT[])) AS scopes(org, installation);
-- family, 0, 1, scopes[0], scopes[1]

-- operate.principal_by_id
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state, principal.created_at, principal.updated_at
FROM principal
WHERE principal.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY principal.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.principal_by_id_in_scope
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state, principal.created_at, principal.updated_at
FROM principal
WHERE principal.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value)) AND principal.org = $2::VARCHAR COLLATE "C" AND principal.installation = $3::VARCHAR COLLATE "C"
ORDER BY principal.id
LIMIT $4::INTEGER;
-- wanted[0], the_org, the_installation, 500

-- operate.remote_link_by_id
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.slot, remote_link.state, remote_link.version, remote_link.authority, remote_link.created_at, remote_link.updated_at
FROM remote_link
WHERE remote_link.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY remote_link.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.remote_link_by_id_in_scope
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.slot, remote_link.state, remote_link.version, remote_link.authority, remote_link.created_at, remote_link.updated_at
FROM remote_link
WHERE remote_link.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value)) AND remote_link.org = $2::VARCHAR COLLATE "C" AND remote_link.installation = $3::VARCHAR COLLATE "C"
ORDER BY remote_link.id
LIMIT $4::INTEGER;
-- wanted[0], the_org, the_installation, 500

-- operate.turned_away
SELECT ingress_rejection.reason, CAST(sum(ingress_rejection.count) AS BIGINT) AS sum_1, max(ingress_rejection.last_at) AS max_1
FROM ingress_rejection
GROUP BY ingress_rejection.reason
ORDER BY ingress_rejection.reason;
-- no parameters

-- operate.turned_away_in_scope
SELECT ingress_rejection.reason, CAST(sum(ingress_rejection.count) AS BIGINT) AS sum_1, max(ingress_rejection.last_at) AS max_1
FROM ingress_rejection
WHERE ingress_rejection.org = $1::VARCHAR COLLATE "C" AND ingress_rejection.installation = $2::VARCHAR COLLATE "C"
GROUP BY ingress_rejection.reason
ORDER BY ingress_rejection.reason;
-- the_org, the_installation

-- operate.unresolved
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane, min(CASE WHEN (looked_into.state IN ($5::VARCHAR COLLATE "C", $6::VARCHAR COLLATE "C", $7::VARCHAR COLLATE "C", $8::VARCHAR COLLATE "C")) THEN $1::INTEGER ELSE $2::INTEGER END) AS min_1
FROM work_item AS looked_into
JOIN effect_attempt ON effect_attempt.id = looked_into.subject_id
JOIN work_item AS effect ON effect.id = effect_attempt.work_id
LEFT OUTER
JOIN disposition ON disposition.attempt_id = effect_attempt.id
LEFT OUTER
JOIN command_end ON command_end.command_id = effect_attempt.subject_id
WHERE looked_into.family = 'reconcile' AND effect_attempt.outcome IN ($9::VARCHAR COLLATE "C", $10::VARCHAR COLLATE "C") AND command_end.command_id IS NULL AND (disposition.attempt_id IS NULL OR disposition.verdict = $3::VARCHAR COLLATE "C" AND disposition.successor_item_id IS NULL)
GROUP BY effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane
ORDER BY effect_attempt.ended_at, effect_attempt.id
LIMIT $4::INTEGER;
-- 1, 0, 'no_effect_proven', 101, 'cancelled', 'dead', 'skipped', 'succeeded', 'OUTCOME_UNKNOWN', 'REPLAY_SAFE_RETRY'

-- operate.unresolved_in_scope
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane, min(CASE WHEN (looked_into.state IN ($7::VARCHAR COLLATE "C", $8::VARCHAR COLLATE "C", $9::VARCHAR COLLATE "C", $10::VARCHAR COLLATE "C")) THEN $1::INTEGER ELSE $2::INTEGER END) AS min_1
FROM work_item AS looked_into
JOIN effect_attempt ON effect_attempt.id = looked_into.subject_id
JOIN work_item AS effect ON effect.id = effect_attempt.work_id
LEFT OUTER
JOIN disposition ON disposition.attempt_id = effect_attempt.id
LEFT OUTER
JOIN command_end ON command_end.command_id = effect_attempt.subject_id
WHERE looked_into.family = 'reconcile' AND effect_attempt.outcome IN ($11::VARCHAR COLLATE "C", $12::VARCHAR COLLATE "C") AND command_end.command_id IS NULL AND (disposition.attempt_id IS NULL OR disposition.verdict = $3::VARCHAR COLLATE "C" AND disposition.successor_item_id IS NULL) AND effect.org = $4::VARCHAR COLLATE "C" AND effect.installation = $5::VARCHAR COLLATE "C"
GROUP BY effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane
ORDER BY effect_attempt.ended_at, effect_attempt.id
LIMIT $6::INTEGER;
-- 1, 0, 'no_effect_proven', the_org, the_installation, 101, 'cancelled', 'dead', 'skipped', 'succeeded', 'OUTCOME_UNKNOWN', 'REPLAY_SAFE_RETRY'

-- operate.waiting_in_lanes
SELECT count(DISTINCT bounded.item_id) AS count_1
FROM (SELECT work_lane_entry.item_id AS item_id
FROM work_lane_entry
LIMIT $1::BIGINT) AS bounded;
-- entries

-- operate.work_item_by_id
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.updated_at, work_item.finished_at
FROM work_item
WHERE work_item.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY work_item.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.work_item_by_subject_id
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.updated_at, work_item.finished_at
FROM work_item
WHERE work_item.subject_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY work_item.created_at, work_item.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.work_item_history_by_id
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, work_item_history.attempts, work_item_history.claims, work_item_history.failures, work_item_history.deferrals, work_item_history.expiries, work_item_history.lease_owner, work_item_history.ownership_epoch, work_item_history.failure_class, work_item_history.summary, work_item_history.replay_of, work_item_history.predecessor, work_item_history.created_at, work_item_history.finished_at, work_item_history.moved_at
FROM work_item_history
WHERE work_item_history.id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY work_item_history.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- operate.work_item_history_by_subject_id
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, work_item_history.attempts, work_item_history.claims, work_item_history.failures, work_item_history.deferrals, work_item_history.expiries, work_item_history.lease_owner, work_item_history.ownership_epoch, work_item_history.failure_class, work_item_history.summary, work_item_history.replay_of, work_item_history.predecessor, work_item_history.created_at, work_item_history.finished_at, work_item_history.moved_at
FROM work_item_history
WHERE work_item_history.subject_id IN (SELECT wanted.value
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS wanted(value))
ORDER BY work_item_history.created_at, work_item_history.id
LIMIT $2::INTEGER;
-- wanted[0], 500

-- ownership.read
SELECT work_ownership.family, work_ownership.deployment, work_ownership.release_digest, work_ownership.epoch, work_ownership.operation_id, work_ownership.state, work_ownership.changed_at
FROM work_ownership
JOIN unnest(CAST($1::VARCHAR AS TEXT[])) AS families(family) ON work_ownership.family = families.family;
-- families[0]

-- ownership.read_all
SELECT work_ownership.family, work_ownership.deployment, work_ownership.release_digest, work_ownership.epoch, work_ownership.operation_id, work_ownership.state, work_ownership.changed_at
FROM work_ownership;
-- no parameters

-- principals.by_name
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM principal
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[])) AS names(org, installation, called) ON principal.org = names.org AND principal.installation = names.installation AND principal.name = names.called
ORDER BY principal.id;
-- names[0], names[1], names[2]

-- principals.end_generation
UPDATE binding_generation
SET state=$1::VARCHAR COLLATE "C", ended_at=$2::BIGINT, reason=$3::VARCHAR COLLATE "C"
WHERE binding_generation.principal_id = $4::VARCHAR COLLATE "C" AND binding_generation.generation = $5::BIGINT AND binding_generation.state = $6::VARCHAR COLLATE "C";
-- 'ended', now_us, why, the_principal_id, the_generation, 'current'

-- principals.erase_tokens
UPDATE token_version
SET sealed=NULL
WHERE token_version.principal_id = $1::VARCHAR COLLATE "C" AND token_version.sealed IS NOT NULL AND NOT (token_version.generation = $2::BIGINT AND token_version.version = $3::BIGINT);
-- the_principal_id, but_generation, but_version

-- principals.generation
SELECT binding_generation.principal_id, binding_generation.generation, binding_generation.id, binding_generation.state, binding_generation.remote_subject, binding_generation.remote_tenant, binding_generation.created_at, binding_generation.ended_at, binding_generation.reason
FROM binding_generation
WHERE binding_generation.principal_id = $1::VARCHAR COLLATE "C" AND binding_generation.generation = $2::BIGINT;
-- the_principal_id, the_generation

-- principals.get
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM principal
WHERE principal.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY principal.id;
-- ids[0]

-- principals.lock
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM principal
WHERE principal.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY principal.id
FOR UPDATE;
-- ids[0]

-- principals.lock_by_name
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM principal
JOIN unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[])) AS names(org, installation, called) ON principal.org = names.org AND principal.installation = names.installation AND principal.name = names.called
ORDER BY principal.id
FOR UPDATE OF principal;
-- names[0], names[1], names[2]

-- principals.set
UPDATE principal
SET current_generation=$1::BIGINT, state=$2::VARCHAR COLLATE "C", updated_at=$3::BIGINT
WHERE principal.id = $4::VARCHAR COLLATE "C";
-- new_generation, new_state, now_us, the_id

-- principals.tokens
SELECT token_version.principal_id, token_version.generation, token_version.version, token_version.sealed, token_version.key_id
FROM token_version
JOIN principal ON principal.id = token_version.principal_id AND principal.current_generation = token_version.generation AND principal.state = $1::VARCHAR COLLATE "C"
WHERE token_version.sealed IS NOT NULL AND token_version.principal_id IN (SELECT ids.id
FROM unnest(CAST($2::VARCHAR AS TEXT[])) AS ids(id));
-- 'connected', ids[0]

-- principals.tokens_under_other_keys
SELECT token_version.principal_id, token_version.generation, token_version.version, token_version.sealed, token_version.key_id
FROM token_version
JOIN principal ON principal.id = token_version.principal_id AND principal.current_generation = token_version.generation AND principal.state = $1::VARCHAR COLLATE "C"
WHERE token_version.sealed IS NOT NULL AND token_version.key_id != $2::VARCHAR COLLATE "C"
ORDER BY token_version.principal_id;
-- 'connected', key

-- rewrap.event_object_page
SELECT event_object.event_id AS name, event_object.sealed, event_object.key_id
FROM event_object
WHERE event_object.event_id > $1::VARCHAR COLLATE "C" AND event_object.key_id != $2::VARCHAR COLLATE "C" AND event_object.sealed IS NOT NULL
ORDER BY event_object.event_id
LIMIT $3::BIGINT;
-- after, current, rows

-- rewrap.event_object_replace
UPDATE event_object
SET sealed=$1::BYTEA, key_id=$2::VARCHAR COLLATE "C"
WHERE event_object.event_id = $3::VARCHAR COLLATE "C" AND event_object.key_id = $4::VARCHAR COLLATE "C" AND event_object.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.event_page
SELECT event.id AS name, event.sealed, event.key_id
FROM event
WHERE event.id > $1::VARCHAR COLLATE "C" AND event.key_id != $2::VARCHAR COLLATE "C" AND event.sealed IS NOT NULL
ORDER BY event.id
LIMIT $3::BIGINT;
-- after, current, rows

-- rewrap.event_replace
UPDATE event
SET sealed=$1::BYTEA, key_id=$2::VARCHAR COLLATE "C"
WHERE event.id = $3::VARCHAR COLLATE "C" AND event.key_id = $4::VARCHAR COLLATE "C" AND event.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_page_page
SELECT ingress_page.id AS name, ingress_page.sealed, ingress_page.key_id
FROM ingress_page
WHERE ingress_page.id > $1::VARCHAR COLLATE "C" AND ingress_page.key_id != $2::VARCHAR COLLATE "C" AND ingress_page.sealed IS NOT NULL
ORDER BY ingress_page.id
LIMIT $3::BIGINT;
-- after, current, rows

-- rewrap.ingress_page_replace
UPDATE ingress_page
SET sealed=$1::BYTEA, key_id=$2::VARCHAR COLLATE "C"
WHERE ingress_page.id = $3::VARCHAR COLLATE "C" AND ingress_page.key_id = $4::VARCHAR COLLATE "C" AND ingress_page.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_quarantine_page
SELECT ingress_quarantine.receipt_id AS name, ingress_quarantine.sealed, ingress_quarantine.key_id
FROM ingress_quarantine
WHERE ingress_quarantine.receipt_id > $1::VARCHAR COLLATE "C" AND ingress_quarantine.key_id != $2::VARCHAR COLLATE "C" AND ingress_quarantine.sealed IS NOT NULL
ORDER BY ingress_quarantine.receipt_id
LIMIT $3::BIGINT;
-- after, current, rows

-- rewrap.ingress_quarantine_replace
UPDATE ingress_quarantine
SET sealed=$1::BYTEA, key_id=$2::VARCHAR COLLATE "C"
WHERE ingress_quarantine.receipt_id = $3::VARCHAR COLLATE "C" AND ingress_quarantine.key_id = $4::VARCHAR COLLATE "C" AND ingress_quarantine.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_receipt_page
SELECT ingress_receipt.id AS name, ingress_receipt.sealed, ingress_receipt.key_id
FROM ingress_receipt
WHERE ingress_receipt.id > $1::VARCHAR COLLATE "C" AND ingress_receipt.key_id != $2::VARCHAR COLLATE "C" AND ingress_receipt.sealed IS NOT NULL
ORDER BY ingress_receipt.id
LIMIT $3::BIGINT;
-- after, current, rows

-- rewrap.ingress_receipt_replace
UPDATE ingress_receipt
SET sealed=$1::BYTEA, key_id=$2::VARCHAR COLLATE "C"
WHERE ingress_receipt.id = $3::VARCHAR COLLATE "C" AND ingress_receipt.key_id = $4::VARCHAR COLLATE "C" AND ingress_receipt.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.webhook_secret_page
SELECT webhook_secret.id AS name, webhook_secret.sealed, webhook_secret.key_id
FROM webhook_secret
WHERE webhook_secret.id > $1::VARCHAR COLLATE "C" AND webhook_secret.key_id != $2::VARCHAR COLLATE "C" AND webhook_secret.sealed IS NOT NULL
ORDER BY webhook_secret.id
LIMIT $3::BIGINT;
-- after, current, rows

-- rewrap.webhook_secret_replace
UPDATE webhook_secret
SET sealed=$1::BYTEA, key_id=$2::VARCHAR COLLATE "C"
WHERE webhook_secret.id = $3::VARCHAR COLLATE "C" AND webhook_secret.key_id = $4::VARCHAR COLLATE "C" AND webhook_secret.sealed IS NOT NULL;
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
WHERE credential.hash = $1::VARCHAR COLLATE "C";
-- the_hash

-- trust.lock_by_id
SELECT credential.hash, credential.id, credential.org, credential.installation, credential.capabilities, credential.state, credential.note, credential.created_at, credential.revoked_at
FROM credential
WHERE credential.id = $1::VARCHAR COLLATE "C"
FOR UPDATE;
-- the_id

-- trust.read_all
SELECT credential.hash, credential.id, credential.org, credential.installation, credential.capabilities, credential.state, credential.note, credential.created_at, credential.revoked_at
FROM credential
ORDER BY credential.created_at, credential.id;
-- no parameters

-- trust.revoke
UPDATE credential
SET state=$1::VARCHAR COLLATE "C", revoked_at=$2::BIGINT
WHERE credential.id = $3::VARCHAR COLLATE "C" AND credential.state = $4::VARCHAR COLLATE "C";
-- 'revoked', now_us, the_id, 'active'

-- work.advance
UPDATE work_item
SET run_after=$1::BIGINT, updated_at=$1::BIGINT
FROM unnest(CAST($2::VARCHAR AS TEXT[])) AS due(id)
WHERE work_item.id = due.id;
-- now_us, due[0]

-- work.candidates
SELECT work_ready.family, work_ready.shelf, work_ready.org, work_ready.installation, work_ready.due, work_ready.item_id, work_ready.source_lane, work_ready.target_lane
FROM work_ready
WHERE work_ready.family = $1::VARCHAR COLLATE "C" AND work_ready.shelf = $2::BIGINT AND work_ready.org = $3::VARCHAR COLLATE "C" AND work_ready.installation = $4::VARCHAR COLLATE "C" AND work_ready.due >= $5::BIGINT AND work_ready.due <= (date_part('epoch', statement_timestamp()) * 1000000)::bigint
ORDER BY work_ready.due, work_ready.item_id
LIMIT $6::BIGINT
FOR UPDATE SKIP LOCKED;
-- family, shelf, org, installation, since, rows

-- work.count_dispatch
UPDATE work_item
SET attempts=(work_item.attempts + $1::BIGINT), lease_until=marks.until_us, updated_at=$2::BIGINT
FROM unnest(CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS BIGINT[])) AS marks(id, until_us)
WHERE work_item.id = marks.id;
-- 1, now_us, marks[0], marks[1]

-- work.drop_ready
DELETE
FROM work_ready USING unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS BIGINT[]), CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS BIGINT[]), CAST($6::VARCHAR AS TEXT[])) AS keys(family, shelf, org, installation, due, item_id)
WHERE work_ready.family = keys.family AND work_ready.shelf = keys.shelf AND work_ready.org = keys.org AND work_ready.installation = keys.installation AND work_ready.due = keys.due AND work_ready.item_id = keys.item_id;
-- keys[0], keys[1], keys[2], keys[3], keys[4], keys[5]

-- work.for_subject
SELECT work_item.id, work_item.source_lane, work_item.target_lane
FROM work_item
WHERE work_item.subject_id = $1::VARCHAR COLLATE "C" AND work_item.family = $2::VARCHAR COLLATE "C";
-- subject_id, family

-- work.forget_claimers
DELETE
FROM work_claimer
WHERE (work_claimer.owner, work_claimer.family) IN (SELECT "old".owner, "old".family
FROM unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[])) AS "old"(owner, family)) AND work_claimer.claimed_at < $3::BIGINT;
-- old[0], old[1], before_us

-- work.forget_leases
DELETE
FROM work_lease
WHERE work_lease.token IN (SELECT tokens.token
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS tokens(token));
-- tokens[0]

-- work.in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM work_item_history
WHERE work_item_history.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- work.keep_in_history
INSERT INTO work_item_history (id, family, org, installation, subject_kind, subject_id, view_digest, capability_version, source_lane, source_position, target_lane, target_position, state, attempts, claims, failures, deferrals, expiries, lease_owner, ownership_epoch, failure_class, summary, replay_of, predecessor, created_at, finished_at, moved_at) SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.attempts, work_item.claims, work_item.failures, work_item.deferrals, work_item.expiries, work_item.lease_owner, work_item.ownership_epoch, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.finished_at, $1::BIGINT AS moved_at
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM unnest(CAST($2::VARCHAR AS TEXT[])) AS ids(id));
-- now_us, ids[0]

-- work.leases_over
SELECT work_lease.token, work_lease.items
FROM work_lease
WHERE work_lease.family = $1::VARCHAR COLLATE "C" AND work_lease.due <= (date_part('epoch', statement_timestamp()) * 1000000)::bigint
ORDER BY work_lease.due
LIMIT 64
FOR UPDATE SKIP LOCKED;
-- family

-- work.leave_for_history
DELETE
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- work.lock_claimed
SELECT work_item.id, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY work_item.id
FOR UPDATE;
-- ids[0]

-- work.lock_claimer
SELECT work_claimer.token, work_claimer.items
FROM work_claimer
WHERE work_claimer.owner = $1::VARCHAR COLLATE "C" AND work_claimer.family = $2::VARCHAR COLLATE "C"
FOR UPDATE;
-- owner, family

-- work.lock_free_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY work_item.id
FOR UPDATE SKIP LOCKED;
-- ids[0]

-- work.lock_in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM work_item_history
WHERE work_item_history.id = $1::VARCHAR COLLATE "C"
FOR UPDATE;
-- item

-- work.lock_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY work_item.id
FOR UPDATE;
-- ids[0]

-- work.lock_old
SELECT work_item.id, work_item.family, work_item.subject_kind, work_item.subject_id, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.finished_at
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id))
ORDER BY work_item.id
FOR UPDATE SKIP LOCKED;
-- ids[0]

-- work.lock_walk
SELECT work_retention.name, work_retention.passed, work_retention.moved, work_retention.seen_since, work_retention.overdue_since, work_retention.walked_at
FROM work_retention
WHERE work_retention.name = $1::VARCHAR COLLATE "C"
FOR UPDATE;
-- walk

-- work.made_at
SELECT work_item.id, work_item.created_at
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- work.next_hint
SELECT work_ready.org, work_ready.installation
FROM work_ready
WHERE work_ready.family = $1::VARCHAR COLLATE "C" AND work_ready.shelf = $2::BIGINT AND (work_ready.org, work_ready.installation) >= ($3::VARCHAR COLLATE "C", $4::VARCHAR COLLATE "C")
ORDER BY work_ready.org, work_ready.installation, work_ready.due
LIMIT 1;
-- family, shelf, org, installation

-- work.note
UPDATE work_item
SET summary=(coalesce(work_item.summary, $1::VARCHAR) || $2::VARCHAR COLLATE "C")
WHERE work_item.id = $3::VARCHAR COLLATE "C";
-- '', note, item

-- work.old_claimers
SELECT work_claimer.owner, work_claimer.family
FROM work_claimer
WHERE work_claimer.claimed_at < $1::BIGINT;
-- before_us

-- work.page_of_old
SELECT work_item.id, work_item.family, work_item.subject_kind, work_item.subject_id, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.finished_at
FROM work_item
WHERE work_item.id > $1::VARCHAR COLLATE "C" AND work_item.id < $2::VARCHAR COLLATE "C"
ORDER BY work_item.id
LIMIT $3::BIGINT;
-- after, before, rows

-- work.plain_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.id IN (SELECT ids.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS ids(id));
-- ids[0]

-- work.recent_claimers
SELECT work_claimer.owner, max(work_claimer.claimed_at) AS claimed_at
FROM work_claimer
WHERE work_claimer.claimed_at > $1::BIGINT
GROUP BY work_claimer.owner
ORDER BY work_claimer.owner;
-- after_us

-- work.renew
UPDATE work_item
SET lease_until=leases.until_us, updated_at=$1::BIGINT
FROM unnest(CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS BIGINT[])) AS leases(id, until_us)
WHERE work_item.id = leases.id;
-- now_us, leases[0], leases[1]

-- work.request_cancel
UPDATE work_item
SET cancel_requested=$1::BIGINT, updated_at=$2::BIGINT
FROM unnest(CAST($3::VARCHAR AS TEXT[])) AS ids(id)
WHERE work_item.id = ids.id;
-- 1, now_us, ids[0]

-- work.save_claimer
UPDATE work_claimer
SET token=$1::VARCHAR COLLATE "C", items=$2::VARCHAR COLLATE "C", claimed_at=$3::BIGINT
WHERE work_claimer.owner = $4::VARCHAR COLLATE "C" AND work_claimer.family = $5::VARCHAR COLLATE "C";
-- new_token, new_items, now_us, claimer, claimed_family

-- work.save_walk
UPDATE work_retention
SET passed=$1::VARCHAR COLLATE "C", moved=(work_retention.moved + $2::BIGINT), seen_since=$3::BIGINT, overdue_since=$4::BIGINT, walked_at=$5::BIGINT
WHERE work_retention.name = $6::VARCHAR COLLATE "C";
-- now_passed, more, now_seen, now_overdue, now_walked, walk

-- work.settle
UPDATE work_item
SET state=ends.state, run_after=ends.run_after, claims=ends.claims, failures=ends.failures, first_failed_at=ends.first_failed_at, deferrals=ends.deferrals, first_deferred_at=ends.first_deferred_at, expiries=ends.expiries, alone=$1::BIGINT, failure_class=ends.failure_class, summary=ends.summary, updated_at=$2::BIGINT, finished_at=ends.finished_at
FROM unnest(CAST($3::VARCHAR AS TEXT[]), CAST($4::VARCHAR AS TEXT[]), CAST($5::VARCHAR AS BIGINT[]), CAST($6::VARCHAR AS BIGINT[]), CAST($7::VARCHAR AS BIGINT[]), CAST($8::VARCHAR AS BIGINT[]), CAST($9::VARCHAR AS BIGINT[]), CAST($10::VARCHAR AS BIGINT[]), CAST($11::VARCHAR AS BIGINT[]), CAST($12::VARCHAR AS TEXT[]), CAST($13::VARCHAR AS TEXT[]), CAST($14::VARCHAR AS BIGINT[])) AS ends(id, state, run_after, claims, failures, first_failed_at, deferrals, first_deferred_at, expiries, failure_class, summary, finished_at)
WHERE work_item.id = ends.id;
-- 0, now_us, ends[0], ends[1], ends[2], ends[3], ends[4], ends[5], ends[6], ends[7], ends[8], ends[9], ends[10], ends[11]

-- work.still_running
SELECT work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.lease_until, work_item.id, work_item.source_lane, work_item.target_lane
FROM unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[])) AS claimed(id, token)
JOIN work_item ON work_item.id = claimed.id AND work_item.lease_token = claimed.token AND work_item.state = $3::VARCHAR COLLATE "C";
-- claimed[0], claimed[1], 'processing'

-- work.succeed
UPDATE work_item
SET state='succeeded', expiries=0, alone=0, failure_class=NULL, summary=ends.summary, updated_at=$1::BIGINT, finished_at=$1::BIGINT
FROM unnest(CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS TEXT[])) AS ends(id, summary)
WHERE work_item.id = ends.id;
-- now_us, ends[0], ends[1]

-- work.successor
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.predecessor = $1::VARCHAR COLLATE "C";
-- predecessor

-- work.successor_in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM work_item_history
WHERE work_item_history.predecessor = $1::VARCHAR COLLATE "C";
-- predecessor

-- work.suspects
SELECT work_ready.item_id
FROM work_ready
WHERE work_ready.family = $1::VARCHAR COLLATE "C" AND work_ready.shelf = 1
LIMIT 1;
-- family

-- work.sweep
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item
WHERE work_item.id > $1::VARCHAR COLLATE "C"
ORDER BY work_item.id
LIMIT $2::BIGINT;
-- after, rows

-- work.take
UPDATE work_item
SET state=$1::VARCHAR COLLATE "C", claims=(work_item.claims + $2::BIGINT), expiries=taken.expiries, alone=$3::BIGINT, lease_owner=$4::VARCHAR COLLATE "C", lease_token=$5::VARCHAR COLLATE "C", lease_until=$6::BIGINT, ownership_epoch=$7::BIGINT, updated_at=$8::BIGINT
FROM unnest(CAST($9::VARCHAR AS TEXT[]), CAST($10::VARCHAR AS BIGINT[])) AS taken(id, expiries)
WHERE work_item.id = taken.id;
-- 'processing', 1, alone, owner, token, until_us, epoch, now_us, taken[0], taken[1]

-- work.under_way
SELECT work_item.subject_id
FROM work_item
WHERE work_item.subject_id IN (SELECT subjects.id
FROM unnest(CAST($1::VARCHAR AS TEXT[])) AS subjects(id)) AND (work_item.state NOT IN ($2::VARCHAR COLLATE "C", $3::VARCHAR COLLATE "C", $4::VARCHAR COLLATE "C", $5::VARCHAR COLLATE "C"));
-- subjects[0], 'cancelled', 'dead', 'skipped', 'succeeded'

-- work.waiting
SELECT scopes.org, scopes.installation
FROM unnest(CAST($1::VARCHAR AS TEXT[]), CAST($2::VARCHAR AS TEXT[]), CAST($3::VARCHAR AS BIGINT[])) AS scopes(org, installation, since)
WHERE (SELECT work_ready.due
FROM work_ready
WHERE work_ready.family = $4::VARCHAR COLLATE "C" AND work_ready.shelf = $5::BIGINT AND work_ready.org = scopes.org AND work_ready.installation = scopes.installation AND work_ready.due >= scopes.since
ORDER BY work_ready.due
LIMIT 1) <= (date_part('epoch', statement_timestamp()) * 1000000)::bigint;
-- scopes[0], scopes[1], scopes[2], family, shelf

-- work.walk
SELECT work_retention.name, work_retention.passed, work_retention.moved, work_retention.seen_since, work_retention.overdue_since, work_retention.walked_at
FROM work_retention
WHERE work_retention.name = $1::VARCHAR COLLATE "C";
-- walk
