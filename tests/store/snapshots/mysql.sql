-- Every statement on mysql. Written by `make snapshots`; review it like code.

-- catalog.installations
SELECT DISTINCT view_publication.org, view_publication.installation
FROM view_publication FORCE INDEX (`PRIMARY`, view_publication_digest)
ORDER BY view_publication.org, view_publication.installation;
-- no parameters

-- catalog.latest
SELECT view_publication.org, view_publication.installation, view_publication.capability, view_publication.sequence, view_publication.digest, view_publication.published_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', capability LONGTEXT PATH '$[2]' )) AS scopes STRAIGHT_JOIN view_publication FORCE INDEX (`PRIMARY`, view_publication_digest) ON view_publication.org = scopes.org AND view_publication.installation = scopes.installation AND view_publication.capability = scopes.capability AND view_publication.sequence = (SELECT max(view_publication.sequence) AS max_1
FROM view_publication FORCE INDEX (`PRIMARY`, view_publication_digest)
WHERE view_publication.org = scopes.org AND view_publication.installation = scopes.installation AND view_publication.capability = scopes.capability);
-- scopes (rows as JSON)

-- catalog.load
SELECT binding_view.document
FROM binding_view FORCE INDEX (`PRIMARY`)
WHERE binding_view.digest = ?;
-- address

-- catalog.published
SELECT DISTINCT view_publication.org, view_publication.installation, view_publication.capability, view_publication.digest
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', capability LONGTEXT PATH '$[2]', digest LONGTEXT PATH '$[3]' )) AS pairs STRAIGHT_JOIN view_publication FORCE INDEX (`PRIMARY`, view_publication_digest) ON view_publication.org = pairs.org AND view_publication.installation = pairs.installation AND view_publication.capability = pairs.capability AND view_publication.digest = pairs.digest;
-- pairs (rows as JSON)

-- catalog.scopes
SELECT DISTINCT view_publication.org, view_publication.installation, view_publication.capability
FROM view_publication FORCE INDEX (`PRIMARY`, view_publication_digest)
ORDER BY view_publication.org, view_publication.installation, view_publication.capability;
-- no parameters

-- catch_ups.attach
UPDATE ingress_gap FORCE INDEX (`PRIMARY`)
SET catch_up_id=?
WHERE ingress_gap.org = ? AND ingress_gap.installation = ? AND ingress_gap.capability = ? AND ingress_gap.webhook = ? AND ingress_gap.sequence = ?;
-- new_catch_up, the_org, the_installation, the_capability, the_webhook, the_sequence

-- catch_ups.gaps_of_route
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap FORCE INDEX (`PRIMARY`)
WHERE ingress_gap.org = ? AND ingress_gap.installation = ? AND ingress_gap.capability = ? AND ingress_gap.webhook = ?
ORDER BY ingress_gap.sequence;
-- the_org, the_installation, the_capability, the_webhook

-- catch_ups.live_work
SELECT work_item.id
FROM work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.subject_id = ? AND (work_item.state NOT IN (?, ?, ?, ?));
-- subject, 'cancelled', 'dead', 'skipped', 'succeeded'

-- catch_ups.lock
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM ingress_catch_up FORCE INDEX (`PRIMARY`, ingress_catch_up_page)
WHERE ingress_catch_up.id = ?
FOR UPDATE;
-- the_id

-- catch_ups.move
UPDATE ingress_catch_up FORCE INDEX (`PRIMARY`, ingress_catch_up_page)
SET covered_since=?, covered_until=?, passes=?, from_at=?, since_at=?, until_at=?, losses=?, page_id=?, page_number=?, page_cursor=?, pages=?, items=?, events=?, updated_at=?
WHERE ingress_catch_up.id = ?;
-- new_covered_since, new_covered_until, new_passes, new_from_at, new_since_at, new_until_at, new_losses, new_page_id, new_page_number, new_page_cursor, new_pages, new_items, new_events, now_us, the_id

-- catch_ups.of_pages
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN ingress_catch_up FORCE INDEX (`PRIMARY`, ingress_catch_up_page) ON true = 1
WHERE ingress_catch_up.page_id = ids.id;
-- ids (rows as JSON)

-- catch_ups.read_with
SELECT ingress_page.id
FROM ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number)
WHERE ingress_page.catch_up_id = ? AND ingress_page.pass = ? AND ingress_page.cursor_digest = ?;
-- the_id, the_pass, the_cursor

-- catch_ups.unattended
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap FORCE INDEX (`PRIMARY`)
WHERE ingress_gap.closed_at IS NULL AND ingress_gap.catch_up_id IS NULL AND (ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence) > (?, ?, ?, ?, ?)
ORDER BY ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence
LIMIT ?;
-- after_org, after_installation, after_capability, after_webhook, after_sequence, rows

-- catching_up.gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', capability LONGTEXT PATH '$[2]', webhook LONGTEXT PATH '$[3]', sequence BIGINT PATH '$[4]' )) AS wanted STRAIGHT_JOIN ingress_gap FORCE INDEX (`PRIMARY`) ON ingress_gap.org = wanted.org AND ingress_gap.installation = wanted.installation AND ingress_gap.capability = wanted.capability AND ingress_gap.webhook = wanted.webhook AND ingress_gap.sequence = wanted.sequence;
-- wanted (rows as JSON)

-- catching_up.stored
SELECT ingress_page.id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number) ON true = 1
WHERE ingress_page.id = ids.id;
-- ids (rows as JSON)

-- clock_mark.raise
UPDATE doonce_clock FORCE INDEX (`PRIMARY`)
SET now_us=greatest(doonce_clock.now_us, (SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)))
WHERE doonce_clock.id = ?;
-- 1

-- clock_mark.read
SELECT doonce_clock.now_us, (SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)) AS clock_us
FROM doonce_clock FORCE INDEX (`PRIMARY`)
WHERE doonce_clock.id = ?;
-- 1

-- clock_mark.set
UPDATE doonce_clock FORCE INDEX (`PRIMARY`)
SET now_us=(SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED))
WHERE doonce_clock.id = ?;
-- 1

-- commands.conflicts
SELECT handoff_conflict.`key`, handoff_conflict.slot, handoff_conflict.asked
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( `key` LONGTEXT PATH '$[0]' )) AS `keys` STRAIGHT_JOIN handoff_conflict FORCE INDEX (`PRIMARY`) ON true = 1
WHERE handoff_conflict.`key` = `keys`.`key`;
-- keys (rows as JSON)

-- commands.find_handoffs
SELECT handoff.`key`, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at, command.id AS applied
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( `key` LONGTEXT PATH '$[0]' )) AS `keys` STRAIGHT_JOIN (handoff FORCE INDEX (`PRIMARY`, handoff_outbox_id, handoff_receipt_id_key)
LEFT OUTER
JOIN command FORCE INDEX (`PRIMARY`, command_origin_origin_key_key) ON command.id = handoff.command_id) ON true = 1
WHERE handoff.`key` = `keys`.`key`
ORDER BY handoff.`key`;
-- keys (rows as JSON)

-- commands.load
SELECT command.id, command.origin, command.origin_key, command.org, command.installation, command.capability, command.operation, command.local_ref, command.outbox_id, command.payload_digest, command.payload, command.remote_id, command.view_digest, command.principal_id, command.generation, command.link_id, command.link_version, command.method, command.request_origin, command.target, command.headers, command.body, command.body_digest, command.idempotency_key, command.accepted_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN command FORCE INDEX (`PRIMARY`, command_origin_origin_key_key) ON true = 1
WHERE command.id = ids.id;
-- ids (rows as JSON)

-- commands.load_ends
SELECT command_end.command_id, command_end.ended_as, command_end.attempt_id, command_end.result, command_end.reason, command_end.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN command_end FORCE INDEX (`PRIMARY`) ON true = 1
WHERE command_end.command_id = ids.id;
-- ids (rows as JSON)

-- commands.lock_handoffs
SELECT handoff.`key`, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at, command.id AS applied
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( `key` LONGTEXT PATH '$[0]' )) AS `keys` STRAIGHT_JOIN (handoff FORCE INDEX (`PRIMARY`, handoff_outbox_id, handoff_receipt_id_key)
LEFT OUTER
JOIN command FORCE INDEX (`PRIMARY`, command_origin_origin_key_key) ON command.id = handoff.command_id) ON true = 1
WHERE handoff.`key` = `keys`.`key`
ORDER BY handoff.`key`
FOR UPDATE /*!80001 OF handoff */;
-- keys (rows as JSON)

-- completions.attempts
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.reason, effect_attempt.ended_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number) ON true = 1
WHERE effect_attempt.id = ids.id;
-- ids (rows as JSON)

-- conformance.facts
SELECT (SELECT count(*) AS count_1
FROM handoff FORCE INDEX (`PRIMARY`, handoff_outbox_id, handoff_receipt_id_key)
WHERE handoff.`key` = ?) AS anon_1, (SELECT count(*) AS count_2
FROM (SELECT command.id AS id
FROM command FORCE INDEX (`PRIMARY`, command_origin_origin_key_key)
WHERE command.origin_key = ?) AS anon_3) AS anon_2, (SELECT count(*) AS count_3
FROM work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.subject_id IN (SELECT command.id
FROM command FORCE INDEX (`PRIMARY`, command_origin_origin_key_key)
WHERE command.origin_key = ?)) AS anon_4;
-- key, key, key

-- durability.end_frozen
SELECT pg_terminate_backend(pg_stat_activity.pid) AS pg_terminate_backend_1
FROM pg_stat_activity
WHERE pg_stat_activity.datname = current_database() AND pg_stat_activity.usename = current_user AND pg_stat_activity.application_name = ? AND pg_stat_activity.state = 'active' AND pg_stat_activity.wait_event = 'ClientRead' AND state_change < clock_timestamp() - ? * interval '1 millisecond';
-- application_name, for_ms

-- durability.settings
SHOW SESSION VARIABLES
WHERE variable_name IN ('version', 'autocommit', 'tx_isolation', 'transaction_isolation', 'time_zone', 'read_only', 'super_read_only', 'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_rollback_on_timeout', 'log_bin', 'sync_binlog', 'wsrep_on', 'max_allowed_packet', 'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled');
-- no parameters

-- effects.attempts_by_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at, effect_attempt.status
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number) ON true = 1
WHERE effect_attempt.id = ids.id;
-- ids (rows as JSON)

-- effects.bump_evidence
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number)
SET effect_attempt.evidence_version=(effect_attempt.evidence_version + ?)
WHERE effect_attempt.id = ids.id;
-- ids (rows as JSON), 1

-- effects.dispositions
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN disposition FORCE INDEX (`PRIMARY`, disposition_successor_item_id_key) ON true = 1
WHERE disposition.attempt_id = ids.id;
-- ids (rows as JSON)

-- effects.end
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', outcome LONGTEXT PATH '$[1]', reason LONGTEXT PATH '$[2]', effect_free BIGINT PATH '$[3]', settled_by LONGTEXT PATH '$[4]', status BIGINT PATH '$[5]', receipt LONGTEXT PATH '$[6]', result LONGTEXT PATH '$[7]' )) AS ends STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number)
SET effect_attempt.state=?, effect_attempt.outcome=ends.outcome, effect_attempt.reason=ends.reason, effect_attempt.ended_at=?, effect_attempt.settled_by=ends.settled_by, effect_attempt.effect_free=ends.effect_free, effect_attempt.status=ends.status, effect_attempt.receipt=ends.receipt, effect_attempt.result=ends.result
WHERE effect_attempt.id = ends.id AND effect_attempt.outcome IS NULL;
-- ends (rows as JSON), 'ended', now_us

-- effects.evidence_of
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN attempt_evidence FORCE INDEX (`PRIMARY`, attempt_evidence_attempt_id) ON true = 1
WHERE attempt_evidence.attempt_id = ids.id
ORDER BY attempt_evidence.attempt_id, attempt_evidence.recorded_at, attempt_evidence.id;
-- ids (rows as JSON)

-- effects.give_successor
UPDATE disposition FORCE INDEX (`PRIMARY`, disposition_successor_item_id_key)
SET evidence_version=?, successor_item_id=?
WHERE disposition.attempt_id = ? AND disposition.successor_item_id IS NULL;
-- version, successor, attempt

-- effects.lineage_of
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN disposition FORCE INDEX (`PRIMARY`, disposition_successor_item_id_key) ON true = 1
WHERE disposition.successor_item_id = ids.id;
-- ids (rows as JSON)

-- effects.lock_attempts
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number) ON true = 1
WHERE effect_attempt.id = ids.id
ORDER BY effect_attempt.id
FOR UPDATE /*!80001 OF effect_attempt */;
-- ids (rows as JSON)

-- effects.mark
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', nonce LONGTEXT PATH '$[1]', horizon_us BIGINT PATH '$[2]', request_digest LONGTEXT PATH '$[3]' )) AS marks STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number)
SET effect_attempt.state=?, effect_attempt.request_digest=marks.request_digest, effect_attempt.mark_nonce=marks.nonce, effect_attempt.dispatched_at=?, effect_attempt.horizon_at=marks.horizon_us
WHERE effect_attempt.id = marks.id AND effect_attempt.state = ?;
-- marks (rows as JSON), 'dispatched', now_us, 'prepared'

-- effects.of_subjects
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.work_id, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.effect_free, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.settled_by, effect_attempt.evidence_version, effect_attempt.horizon_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number) ON true = 1
WHERE effect_attempt.subject_id = ids.id
ORDER BY effect_attempt.subject_id, effect_attempt.number;
-- ids (rows as JSON)

-- events.load
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt) ON true = 1
WHERE event.id = ids.id;
-- ids (rows as JSON)

-- events.load_objects
SELECT event_object.event_id, event_object.attempt_id, event_object.sealed, event_object.key_id, event_object.read_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN event_object FORCE INDEX (`PRIMARY`) ON true = 1
WHERE event_object.event_id = ids.id;
-- ids (rows as JSON)

-- events.winners
SELECT event.id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( identity LONGTEXT PATH '$[0]' )) AS `keys` STRAIGHT_JOIN event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt) ON true = 1
WHERE event.identity = `keys`.identity
ORDER BY event.identity
FOR UPDATE /*!80001 OF event */;
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
FROM database_incarnation FORCE INDEX (`PRIMARY`, database_incarnation_id_key)
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
FROM database_incarnation FORCE INDEX (`PRIMARY`, database_incarnation_id_key)
ORDER BY database_incarnation.sequence DESC
LIMIT ?;
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
FROM webhook_secret FORCE INDEX (`PRIMARY`, webhook_secret_route)
WHERE webhook_secret.org = ? AND webhook_secret.installation = ? AND webhook_secret.capability = ? AND webhook_secret.webhook = ? AND webhook_secret.ended_at IS NULL
ORDER BY webhook_secret.created_at DESC, webhook_secret.id DESC;
-- the_org, the_installation, the_capability, the_webhook

-- ingress.at_rest
SELECT ingress_receipt.id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body) ON true = 1
WHERE ingress_receipt.id = ids.id AND NOT (EXISTS (SELECT *
FROM work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.subject_id = ingress_receipt.id AND (work_item.state NOT IN (?, ?, ?, ?))));
-- ids (rows as JSON), 'cancelled', 'dead', 'skipped', 'succeeded'

-- ingress.close_gap
UPDATE ingress_gap FORCE INDEX (`PRIMARY`)
SET closed_at=?, closed_by=?, reason=?
WHERE ingress_gap.org = ? AND ingress_gap.installation = ? AND ingress_gap.capability = ? AND ingress_gap.webhook = ? AND ingress_gap.sequence = ? AND ingress_gap.closed_at IS NULL;
-- now_us, who, why, the_org, the_installation, the_capability, the_webhook, the_sequence

-- ingress.count_rejections
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', capability LONGTEXT PATH '$[2]', webhook LONGTEXT PATH '$[3]', reason LONGTEXT PATH '$[4]', more BIGINT PATH '$[5]' )) AS counted STRAIGHT_JOIN ingress_rejection FORCE INDEX (`PRIMARY`)
SET ingress_rejection.count=(ingress_rejection.count + counted.more), ingress_rejection.last_at=?
WHERE ingress_rejection.org = counted.org AND ingress_rejection.installation = counted.installation AND ingress_rejection.capability = counted.capability AND ingress_rejection.webhook = counted.webhook AND ingress_rejection.reason = counted.reason;
-- counted (rows as JSON), now_us

-- ingress.end_secret
UPDATE webhook_secret FORCE INDEX (`PRIMARY`, webhook_secret_route)
SET sealed=?, ended_at=?
WHERE webhook_secret.org = ? AND webhook_secret.installation = ? AND webhook_secret.capability = ? AND webhook_secret.webhook = ? AND webhook_secret.id = ? AND webhook_secret.ended_at IS NULL;
-- nothing, now_us, the_org, the_installation, the_capability, the_webhook, the_id

-- ingress.erase_pages
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number)
SET ingress_page.sealed=?
WHERE ingress_page.id = ids.id;
-- ids (rows as JSON), nothing

-- ingress.erase_quarantined
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
SET ingress_quarantine.sealed=?
WHERE ingress_quarantine.receipt_id = ids.id;
-- ids (rows as JSON), nothing

-- ingress.erase_receipts
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body)
SET ingress_receipt.sealed=?
WHERE ingress_receipt.id = ids.id;
-- ids (rows as JSON), nothing

-- ingress.gap
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap FORCE INDEX (`PRIMARY`)
WHERE ingress_gap.org = ? AND ingress_gap.installation = ? AND ingress_gap.capability = ? AND ingress_gap.webhook = ? AND ingress_gap.sequence = ?;
-- the_org, the_installation, the_capability, the_webhook, the_sequence

-- ingress.gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', capability LONGTEXT PATH '$[2]', webhook LONGTEXT PATH '$[3]' )) AS routes STRAIGHT_JOIN ingress_gap FORCE INDEX (`PRIMARY`) ON ingress_gap.org = routes.org AND ingress_gap.installation = routes.installation AND ingress_gap.capability = routes.capability AND ingress_gap.webhook = routes.webhook
ORDER BY ingress_gap.sequence;
-- routes (rows as JSON)

-- ingress.keys_in_use
SELECT DISTINCT webhook_secret.key_id
FROM webhook_secret FORCE INDEX (`PRIMARY`, webhook_secret_route)
WHERE webhook_secret.ended_at IS NULL;
-- no parameters

-- ingress.load
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body) ON true = 1
WHERE ingress_receipt.id = ids.id;
-- ids (rows as JSON)

-- ingress.lock_identities
SELECT ingress_identity.identity, ingress_identity.receipt_id, ingress_identity.body_digest, ingress_identity.nonce, ingress_identity.received_at, ingress_receipt.id AS applied
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( identity LONGTEXT PATH '$[0]' )) AS `keys` STRAIGHT_JOIN (ingress_identity FORCE INDEX (`PRIMARY`, ingress_identity_receipt_id_key)
LEFT OUTER
JOIN ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body) ON ingress_receipt.id = ingress_identity.receipt_id) ON true = 1
WHERE ingress_identity.identity = `keys`.identity
ORDER BY ingress_identity.identity
FOR UPDATE /*!80001 OF ingress_identity */;
-- keys (rows as JSON)

-- ingress.lock_receipts
SELECT ingress_receipt.id, CASE WHEN (ingress_receipt.sealed IS NULL) THEN ? ELSE ? END AS kept
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body) ON true = 1
WHERE ingress_receipt.id = ids.id
ORDER BY ingress_receipt.id
FOR UPDATE /*!80001 OF ingress_receipt */;
-- 0, 1, ids (rows as JSON)

-- ingress.old_pages
SELECT ingress_page.id
FROM ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number)
WHERE ingress_page.sealed IS NOT NULL AND ingress_page.received_at < ?
ORDER BY ingress_page.received_at, ingress_page.id
LIMIT ?;
-- before_us, rows

-- ingress.old_quarantined
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
WHERE ingress_quarantine.sealed IS NOT NULL AND ingress_quarantine.received_at < ?
ORDER BY ingress_quarantine.received_at, ingress_quarantine.receipt_id
LIMIT ?;
-- before_us, rows

-- ingress.old_receipts
SELECT ingress_receipt.id
FROM ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body)
WHERE ingress_receipt.sealed IS NOT NULL AND ingress_receipt.received_at < ? AND NOT (EXISTS (SELECT *
FROM work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.subject_id = ingress_receipt.id AND (work_item.state NOT IN (?, ?, ?, ?))))
ORDER BY ingress_receipt.received_at, ingress_receipt.id
LIMIT ?;
-- before_us, 'cancelled', 'dead', 'skipped', 'succeeded', rows

-- ingress.open_gaps
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap FORCE INDEX (`PRIMARY`)
WHERE ingress_gap.closed_at IS NULL
ORDER BY ingress_gap.opened_at, ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook
LIMIT ?;
-- 500

-- ingress.open_gaps_in_scope
SELECT ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook, ingress_gap.sequence, ingress_gap.losses, ingress_gap.opened_at, ingress_gap.last_at, ingress_gap.closed_at, ingress_gap.closed_by, ingress_gap.reason, ingress_gap.cause, ingress_gap.asked_by, ingress_gap.asked_why, ingress_gap.catch_up_id
FROM ingress_gap FORCE INDEX (`PRIMARY`)
WHERE ingress_gap.closed_at IS NULL AND ingress_gap.org = ? AND ingress_gap.installation = ?
ORDER BY ingress_gap.opened_at, ingress_gap.org, ingress_gap.installation, ingress_gap.capability, ingress_gap.webhook
LIMIT ?;
-- the_org, the_installation, 500

-- ingress.quarantined
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.body_digest, ingress_quarantine.receipt_id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( identity LONGTEXT PATH '$[0]' )) AS `keys` STRAIGHT_JOIN ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key) ON true = 1
WHERE ingress_quarantine.identity = `keys`.identity;
-- keys (rows as JSON)

-- ingress.rejections
SELECT ingress_rejection.org, ingress_rejection.installation, ingress_rejection.capability, ingress_rejection.webhook, ingress_rejection.reason, ingress_rejection.count, ingress_rejection.first_at, ingress_rejection.last_at
FROM ingress_rejection FORCE INDEX (`PRIMARY`)
ORDER BY ingress_rejection.last_at DESC;
-- no parameters

-- ingress.sealed
SELECT ingress_receipt.sealed, ingress_receipt.key_id
FROM ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body)
WHERE ingress_receipt.id = ? AND ingress_receipt.sealed IS NOT NULL;
-- the_receipt

-- ingress.sealed_page
SELECT ingress_page.sealed, ingress_page.key_id
FROM ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number)
WHERE ingress_page.id = ? AND ingress_page.sealed IS NOT NULL;
-- the_receipt

-- ingress.sealed_quarantined
SELECT ingress_quarantine.sealed, ingress_quarantine.key_id
FROM ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
WHERE ingress_quarantine.receipt_id = ? AND ingress_quarantine.sealed IS NOT NULL;
-- the_receipt

-- ingress.widen_gaps
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', capability LONGTEXT PATH '$[2]', webhook LONGTEXT PATH '$[3]', sequence BIGINT PATH '$[4]', more BIGINT PATH '$[5]', since_us BIGINT PATH '$[6]' )) AS wider STRAIGHT_JOIN ingress_gap FORCE INDEX (`PRIMARY`)
SET ingress_gap.losses=(ingress_gap.losses + wider.more), ingress_gap.opened_at=CASE WHEN (ingress_gap.opened_at > wider.since_us) THEN wider.since_us ELSE ingress_gap.opened_at END, ingress_gap.last_at=?
WHERE ingress_gap.org = wider.org AND ingress_gap.installation = wider.installation AND ingress_gap.capability = wider.capability AND ingress_gap.webhook = wider.webhook AND ingress_gap.sequence = wider.sequence;
-- wider (rows as JSON), now_us

-- lanes.drop_entries
DELETE
FROM work_lane_entry USING JSON_TABLE( ? , '$[*]' COLUMNS ( lane LONGTEXT PATH '$[0]', position BIGINT PATH '$[1]' )) AS entries STRAIGHT_JOIN work_lane_entry FORCE INDEX (`PRIMARY`, work_lane_entry_next)
WHERE work_lane_entry.lane = entries.lane AND work_lane_entry.position = entries.position;
-- entries (rows as JSON)

-- lanes.entries_at
SELECT work_lane_entry.lane, work_lane_entry.position, work_lane_entry.item_id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( lane LONGTEXT PATH '$[0]', position BIGINT PATH '$[1]' )) AS entries STRAIGHT_JOIN work_lane_entry FORCE INDEX (`PRIMARY`, work_lane_entry_next) ON true = 1
WHERE work_lane_entry.lane = entries.lane AND work_lane_entry.position = entries.position;
-- entries (rows as JSON)

-- lanes.inherit_entries
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( lane LONGTEXT PATH '$[0]', position BIGINT PATH '$[1]', item_id LONGTEXT PATH '$[2]', due BIGINT PATH '$[3]' )) AS entries STRAIGHT_JOIN work_lane_entry FORCE INDEX (`PRIMARY`, work_lane_entry_next)
SET work_lane_entry.item_id=entries.item_id, work_lane_entry.due=entries.due
WHERE work_lane_entry.lane = entries.lane AND work_lane_entry.position = entries.position;
-- entries (rows as JSON)

-- lanes.lock
SELECT work_lane.lane, work_lane.policy, work_lane.tail, work_lane.holder, work_lane.hold_until, work_lane.nominee, work_lane.nominee_due
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( lane LONGTEXT PATH '$[0]' )) AS lanes STRAIGHT_JOIN work_lane FORCE INDEX (`PRIMARY`) ON true = 1
WHERE work_lane.lane = lanes.lane
ORDER BY work_lane.lane
FOR UPDATE /*!80001 OF work_lane */;
-- lanes (rows as JSON)

-- lanes.next_in_source
SELECT chosen.lane, work_item.id, work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.state, work_item.run_after, work_item.source_lane, work_item.target_lane, work_item.target_position
FROM (SELECT lanes.lane AS lane, (SELECT work_lane_entry.item_id
FROM work_lane_entry FORCE INDEX (`PRIMARY`, work_lane_entry_next)
WHERE work_lane_entry.lane = lanes.lane
ORDER BY work_lane_entry.position
LIMIT ?) AS item_id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( lane LONGTEXT PATH '$[0]' )) AS lanes) AS chosen STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON work_item.id = chosen.item_id;
-- 1, lanes (rows as JSON)

-- lanes.next_in_target
SELECT chosen.lane, work_item.id, work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.state, work_item.run_after, work_item.source_lane, work_item.target_lane, work_item.target_position
FROM (SELECT lanes.lane AS lane, (SELECT work_lane_entry.item_id
FROM work_lane_entry FORCE INDEX (`PRIMARY`, work_lane_entry_next)
WHERE work_lane_entry.lane = lanes.lane AND work_lane_entry.open = ?
ORDER BY work_lane_entry.open, work_lane_entry.due, work_lane_entry.position
LIMIT ?) AS item_id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( lane LONGTEXT PATH '$[0]' )) AS lanes) AS chosen STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON work_item.id = chosen.item_id;
-- 1, 1, lanes (rows as JSON)

-- lanes.save
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( lane LONGTEXT PATH '$[0]', tail BIGINT PATH '$[1]', holder LONGTEXT PATH '$[2]', hold_until BIGINT PATH '$[3]', nominee LONGTEXT PATH '$[4]', due BIGINT PATH '$[5]' )) AS lanes STRAIGHT_JOIN work_lane FORCE INDEX (`PRIMARY`)
SET work_lane.tail=lanes.tail, work_lane.holder=lanes.holder, work_lane.hold_until=lanes.hold_until, work_lane.nominee=lanes.nominee, work_lane.nominee_due=lanes.due
WHERE work_lane.lane = lanes.lane;
-- lanes (rows as JSON)

-- lanes.set_entries
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( lane LONGTEXT PATH '$[0]', position BIGINT PATH '$[1]', open BIGINT PATH '$[2]', due BIGINT PATH '$[3]' )) AS entries STRAIGHT_JOIN work_lane_entry FORCE INDEX (`PRIMARY`, work_lane_entry_next)
SET work_lane_entry.open=entries.open, work_lane_entry.due=entries.due
WHERE work_lane_entry.lane = entries.lane AND work_lane_entry.position = entries.position;
-- entries (rows as JSON)

-- links.find
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', kind LONGTEXT PATH '$[2]', local_ref LONGTEXT PATH '$[3]' )) AS `keys` STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON remote_link.org = `keys`.org AND remote_link.installation = `keys`.installation AND remote_link.kind = `keys`.kind AND remote_link.local_ref = `keys`.local_ref
WHERE remote_link.slot = ?;
-- keys (rows as JSON), ''

-- links.find_remote
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', principal_id LONGTEXT PATH '$[2]', kind LONGTEXT PATH '$[3]', remote_id LONGTEXT PATH '$[4]' )) AS `keys` STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON remote_link.org = `keys`.org AND remote_link.installation = `keys`.installation AND remote_link.principal_id = `keys`.principal_id AND remote_link.kind = `keys`.kind AND remote_link.remote_id = `keys`.remote_id
WHERE remote_link.slot = ?;
-- keys (rows as JSON), ''

-- links.get
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON true = 1
WHERE remote_link.id = ids.id
ORDER BY remote_link.id;
-- ids (rows as JSON)

-- links.lock
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON true = 1
WHERE remote_link.id = ids.id
ORDER BY remote_link.id
FOR UPDATE /*!80001 OF remote_link */;
-- ids (rows as JSON)

-- links.lock_local
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', kind LONGTEXT PATH '$[2]', local_ref LONGTEXT PATH '$[3]' )) AS `keys` STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON remote_link.org = `keys`.org AND remote_link.installation = `keys`.installation AND remote_link.kind = `keys`.kind AND remote_link.local_ref = `keys`.local_ref
WHERE remote_link.slot = ?
ORDER BY remote_link.id
FOR UPDATE /*!80001 OF remote_link */;
-- keys (rows as JSON), ''

-- links.lock_remote
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', principal_id LONGTEXT PATH '$[2]', kind LONGTEXT PATH '$[3]', remote_id LONGTEXT PATH '$[4]' )) AS `keys` STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON remote_link.org = `keys`.org AND remote_link.installation = `keys`.installation AND remote_link.principal_id = `keys`.principal_id AND remote_link.kind = `keys`.kind AND remote_link.remote_id = `keys`.remote_id
WHERE remote_link.slot = ?
ORDER BY remote_link.id
FOR UPDATE /*!80001 OF remote_link */;
-- keys (rows as JSON), ''

-- links.move
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', version BIGINT PATH '$[1]', slot LONGTEXT PATH '$[2]', state LONGTEXT PATH '$[3]' )) AS links STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key)
SET remote_link.slot=links.slot, remote_link.state=links.state, remote_link.version=(remote_link.version + ?), remote_link.updated_at=?
WHERE remote_link.id = links.id AND remote_link.version = links.version;
-- links (rows as JSON), 1, now_us

-- links.renew
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', generation BIGINT PATH '$[1]', authority LONGTEXT PATH '$[2]' )) AS links STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key)
SET remote_link.generation=links.generation, remote_link.version=(remote_link.version + ?), remote_link.authority=links.authority, remote_link.updated_at=?
WHERE remote_link.id = links.id;
-- links (rows as JSON), 1, now_us

-- links.share
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.state, remote_link.version, remote_link.authority
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON true = 1
WHERE remote_link.id = ids.id
ORDER BY remote_link.id /*!80001
FOR SHARE OF remote_link */ /*M! LOCK IN SHARE MODE */;
-- ids (rows as JSON)

-- operate.attempt_evidence_by_attempt_id
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN attempt_evidence FORCE INDEX (`PRIMARY`, attempt_evidence_attempt_id) ON true = 1
WHERE attempt_evidence.attempt_id = wanted.value
ORDER BY attempt_evidence.recorded_at, attempt_evidence.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.attempt_evidence_by_id
SELECT attempt_evidence.id, attempt_evidence.attempt_id, attempt_evidence.kind, attempt_evidence.outcome, attempt_evidence.result, attempt_evidence.reason, attempt_evidence.token, attempt_evidence.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN attempt_evidence FORCE INDEX (`PRIMARY`, attempt_evidence_attempt_id) ON true = 1
WHERE attempt_evidence.id = wanted.value
ORDER BY attempt_evidence.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.binding_generation_by_principal_id
SELECT binding_generation.principal_id, binding_generation.generation, binding_generation.id, binding_generation.state, binding_generation.remote_subject, binding_generation.remote_tenant, binding_generation.created_at, binding_generation.ended_at, binding_generation.reason
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN binding_generation FORCE INDEX (`PRIMARY`, binding_generation_id_key) ON true = 1
WHERE binding_generation.principal_id = wanted.value
ORDER BY binding_generation.generation
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.command_by_id
SELECT command.id, command.origin, command.origin_key, command.org, command.installation, command.capability, command.operation, command.local_ref, command.outbox_id, command.payload_digest, command.payload, command.remote_id, command.view_digest, command.principal_id, command.generation, command.link_id, command.link_version, command.method, command.request_origin, command.target, command.headers, command.body, command.body_digest, command.idempotency_key, command.accepted_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN command FORCE INDEX (`PRIMARY`, command_origin_origin_key_key) ON true = 1
WHERE command.id = wanted.value
ORDER BY command.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.command_end_by_command_id
SELECT command_end.command_id, command_end.ended_as, command_end.attempt_id, command_end.result, command_end.reason, command_end.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN command_end FORCE INDEX (`PRIMARY`) ON true = 1
WHERE command_end.command_id = wanted.value
ORDER BY command_end.command_id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.depth
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ?
LIMIT ?) AS bounded;
-- family, rows

-- operate.depth_in_scope
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ? AND work_ready.shelf = ? AND work_ready.org = ? AND work_ready.installation = ?
LIMIT ?) AS bounded;
-- family, 0, the_org, the_installation, rows

-- operate.disposition_by_attempt_id
SELECT disposition.attempt_id, disposition.verdict, disposition.evidence_version, disposition.names_attempt, disposition.decided_by, disposition.reason, disposition.result, disposition.successor_item_id, disposition.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN disposition FORCE INDEX (`PRIMARY`, disposition_successor_item_id_key) ON true = 1
WHERE disposition.attempt_id = wanted.value
ORDER BY disposition.recorded_at
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.effect_attempt_by_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.number, effect_attempt.work_id, effect_attempt.operation, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.token, effect_attempt.epoch, effect_attempt.generation, effect_attempt.link_version, effect_attempt.request_digest, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.horizon_at, effect_attempt.ended_at, effect_attempt.settled_by, effect_attempt.effect_free, effect_attempt.status, effect_attempt.receipt, effect_attempt.result, effect_attempt.evidence_version
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number) ON true = 1
WHERE effect_attempt.id = wanted.value
ORDER BY effect_attempt.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.effect_attempt_by_subject_id
SELECT effect_attempt.id, effect_attempt.kind, effect_attempt.subject_id, effect_attempt.number, effect_attempt.work_id, effect_attempt.operation, effect_attempt.state, effect_attempt.outcome, effect_attempt.reason, effect_attempt.token, effect_attempt.epoch, effect_attempt.generation, effect_attempt.link_version, effect_attempt.request_digest, effect_attempt.mark_nonce, effect_attempt.prepared_at, effect_attempt.dispatched_at, effect_attempt.horizon_at, effect_attempt.ended_at, effect_attempt.settled_by, effect_attempt.effect_free, effect_attempt.status, effect_attempt.receipt, effect_attempt.result, effect_attempt.evidence_version
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number) ON true = 1
WHERE effect_attempt.subject_id = wanted.value
ORDER BY effect_attempt.prepared_at, effect_attempt.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.event_by_id
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt) ON true = 1
WHERE event.id = wanted.value
ORDER BY event.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.event_by_id_in_scope
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt) ON true = 1
WHERE event.id = wanted.value AND event.org = ? AND event.installation = ?
ORDER BY event.id
LIMIT ?;
-- wanted (rows as JSON), the_org, the_installation, 500

-- operate.event_by_receipt_id
SELECT event.id, event.identity, event.org, event.installation, event.capability, event.webhook, event.type, event.receipt_id, event.position, event.view_digest, event.sealed, event.key_id, event.derived_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt) ON true = 1
WHERE event.receipt_id = wanted.value
ORDER BY event.position
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.event_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT event.org AS org, event.installation AS installation
FROM event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt)
WHERE event.id > ?
ORDER BY event.id DESC
LIMIT ?) AS looked_at;
-- after, rows

-- operate.event_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = ? AND looked_at.installation = ?) THEN ? END) AS count_2
FROM (SELECT event.org AS org, event.installation AS installation
FROM event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt)
WHERE event.id > ?
ORDER BY event.id DESC
LIMIT ?) AS looked_at;
-- the_org, the_installation, 1, after, rows

-- operate.event_object_by_event_id
SELECT event_object.event_id, event_object.attempt_id, event_object.sealed, event_object.key_id, event_object.read_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN event_object FORCE INDEX (`PRIMARY`) ON true = 1
WHERE event_object.event_id = wanted.value
ORDER BY event_object.event_id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.handoff_by_key
SELECT handoff.`key`, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN handoff FORCE INDEX (`PRIMARY`, handoff_outbox_id, handoff_receipt_id_key) ON true = 1
WHERE handoff.`key` = wanted.value
ORDER BY handoff.`key`
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.handoff_by_key_in_scope
SELECT handoff.`key`, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN handoff FORCE INDEX (`PRIMARY`, handoff_outbox_id, handoff_receipt_id_key) ON true = 1
WHERE handoff.`key` = wanted.value AND handoff.org = ? AND handoff.installation = ?
ORDER BY handoff.`key`
LIMIT ?;
-- wanted (rows as JSON), the_org, the_installation, 500

-- operate.handoff_by_outbox_id
SELECT handoff.`key`, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN handoff FORCE INDEX (`PRIMARY`, handoff_outbox_id, handoff_receipt_id_key) ON true = 1
WHERE handoff.outbox_id = wanted.value
ORDER BY handoff.recorded_at, handoff.`key`
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.handoff_by_receipt_id
SELECT handoff.`key`, handoff.state, handoff.org, handoff.installation, handoff.capability, handoff.binding_digest, handoff.outbox_id, handoff.payload_digest, handoff.command_id, handoff.receipt_id, handoff.reason, handoff.nonce, handoff.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN handoff FORCE INDEX (`PRIMARY`, handoff_outbox_id, handoff_receipt_id_key) ON true = 1
WHERE handoff.receipt_id = wanted.value
ORDER BY handoff.`key`
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.handoff_conflict_by_key
SELECT handoff_conflict.`key`, handoff_conflict.slot, handoff_conflict.asked, handoff_conflict.mismatch, handoff_conflict.outbox_id, handoff_conflict.payload_digest, handoff_conflict.recorded_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN handoff_conflict FORCE INDEX (`PRIMARY`) ON true = 1
WHERE handoff_conflict.`key` = wanted.value
ORDER BY handoff_conflict.recorded_at
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_catch_up_by_id
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_catch_up FORCE INDEX (`PRIMARY`, ingress_catch_up_page) ON true = 1
WHERE ingress_catch_up.id = wanted.value
ORDER BY ingress_catch_up.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_catch_up_by_id_in_scope
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_catch_up FORCE INDEX (`PRIMARY`, ingress_catch_up_page) ON true = 1
WHERE ingress_catch_up.id = wanted.value AND ingress_catch_up.org = ? AND ingress_catch_up.installation = ?
ORDER BY ingress_catch_up.id
LIMIT ?;
-- wanted (rows as JSON), the_org, the_installation, 500

-- operate.ingress_catch_up_by_page_id
SELECT ingress_catch_up.id, ingress_catch_up.org, ingress_catch_up.installation, ingress_catch_up.capability, ingress_catch_up.webhook, ingress_catch_up.sequence, ingress_catch_up.view_digest, ingress_catch_up.asked_by, ingress_catch_up.asked_why, ingress_catch_up.covered_since, ingress_catch_up.covered_until, ingress_catch_up.passes, ingress_catch_up.from_at, ingress_catch_up.since_at, ingress_catch_up.until_at, ingress_catch_up.losses, ingress_catch_up.page_id, ingress_catch_up.page_number, ingress_catch_up.page_cursor, ingress_catch_up.pages, ingress_catch_up.items, ingress_catch_up.events, ingress_catch_up.created_at, ingress_catch_up.updated_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_catch_up FORCE INDEX (`PRIMARY`, ingress_catch_up_page) ON true = 1
WHERE ingress_catch_up.page_id = wanted.value
ORDER BY ingress_catch_up.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_identity_by_identity
SELECT ingress_identity.identity, ingress_identity.receipt_id, ingress_identity.body_digest, ingress_identity.nonce, ingress_identity.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_identity FORCE INDEX (`PRIMARY`, ingress_identity_receipt_id_key) ON true = 1
WHERE ingress_identity.identity = wanted.value
ORDER BY ingress_identity.identity
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_page_by_catch_up_id
SELECT ingress_page.id, ingress_page.org, ingress_page.installation, ingress_page.capability, ingress_page.webhook, ingress_page.catch_up_id, ingress_page.pass, ingress_page.number, ingress_page.cursor_digest, ingress_page.view_digest, ingress_page.attempt_id, ingress_page.items, ingress_page.events, ingress_page.fault, ingress_page.body_digest, ingress_page.body_bytes, ingress_page.sealed, ingress_page.key_id, ingress_page.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number) ON true = 1
WHERE ingress_page.catch_up_id = wanted.value
ORDER BY ingress_page.pass, ingress_page.number
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_page_by_id
SELECT ingress_page.id, ingress_page.org, ingress_page.installation, ingress_page.capability, ingress_page.webhook, ingress_page.catch_up_id, ingress_page.pass, ingress_page.number, ingress_page.cursor_digest, ingress_page.view_digest, ingress_page.attempt_id, ingress_page.items, ingress_page.events, ingress_page.fault, ingress_page.body_digest, ingress_page.body_bytes, ingress_page.sealed, ingress_page.key_id, ingress_page.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number) ON true = 1
WHERE ingress_page.id = wanted.value
ORDER BY ingress_page.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_quarantine_by_identity
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key) ON true = 1
WHERE ingress_quarantine.identity = wanted.value
ORDER BY ingress_quarantine.received_at, ingress_quarantine.receipt_id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_quarantine_by_receipt_id
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key) ON true = 1
WHERE ingress_quarantine.receipt_id = wanted.value
ORDER BY ingress_quarantine.receipt_id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_quarantine_by_receipt_id_in_scope
SELECT ingress_quarantine.identity, ingress_quarantine.slot, ingress_quarantine.org, ingress_quarantine.installation, ingress_quarantine.capability, ingress_quarantine.webhook, ingress_quarantine.receipt_id, ingress_quarantine.secret_id, ingress_quarantine.signed_at, ingress_quarantine.body_digest, ingress_quarantine.body_bytes, ingress_quarantine.sealed, ingress_quarantine.key_id, ingress_quarantine.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key) ON true = 1
WHERE ingress_quarantine.receipt_id = wanted.value AND ingress_quarantine.org = ? AND ingress_quarantine.installation = ?
ORDER BY ingress_quarantine.receipt_id
LIMIT ?;
-- wanted (rows as JSON), the_org, the_installation, 500

-- operate.ingress_quarantine_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT ingress_quarantine.org AS org, ingress_quarantine.installation AS installation
FROM ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
WHERE ingress_quarantine.receipt_id > ?
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT ?) AS looked_at;
-- after, rows

-- operate.ingress_quarantine_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = ? AND looked_at.installation = ?) THEN ? END) AS count_2
FROM (SELECT ingress_quarantine.org AS org, ingress_quarantine.installation AS installation
FROM ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
WHERE ingress_quarantine.receipt_id > ?
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT ?) AS looked_at;
-- the_org, the_installation, 1, after, rows

-- operate.ingress_receipt_by_id
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body) ON true = 1
WHERE ingress_receipt.id = wanted.value
ORDER BY ingress_receipt.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.ingress_receipt_by_id_in_scope
SELECT ingress_receipt.id, ingress_receipt.org, ingress_receipt.installation, ingress_receipt.capability, ingress_receipt.webhook, ingress_receipt.view_digest, ingress_receipt.identity, ingress_receipt.secret_id, ingress_receipt.signed_at, ingress_receipt.event_type, ingress_receipt.body_digest, ingress_receipt.body_bytes, ingress_receipt.sealed, ingress_receipt.key_id, ingress_receipt.received_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body) ON true = 1
WHERE ingress_receipt.id = wanted.value AND ingress_receipt.org = ? AND ingress_receipt.installation = ?
ORDER BY ingress_receipt.id
LIMIT ?;
-- wanted (rows as JSON), the_org, the_installation, 500

-- operate.ingress_receipt_count
SELECT count(*) AS count_1, count(*) AS count_2
FROM (SELECT ingress_receipt.org AS org, ingress_receipt.installation AS installation
FROM ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body)
WHERE ingress_receipt.id > ?
ORDER BY ingress_receipt.id DESC
LIMIT ?) AS looked_at;
-- after, rows

-- operate.ingress_receipt_count_in_scope
SELECT count(*) AS count_1, count(CASE WHEN (looked_at.org = ? AND looked_at.installation = ?) THEN ? END) AS count_2
FROM (SELECT ingress_receipt.org AS org, ingress_receipt.installation AS installation
FROM ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body)
WHERE ingress_receipt.id > ?
ORDER BY ingress_receipt.id DESC
LIMIT ?) AS looked_at;
-- the_org, the_installation, 1, after, rows

-- operate.newer
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ? AND work_ready.shelf > 1
LIMIT ?) AS bounded;
-- family, rows

-- operate.newer_in_scope
SELECT count(*) AS count_1
FROM (SELECT work_ready.item_id AS item_id
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ? AND work_ready.shelf > 1 AND work_ready.org = ? AND work_ready.installation = ?
LIMIT ?) AS bounded;
-- family, the_org, the_installation, rows

-- operate.newest_quarantined
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT ?;
-- 20

-- operate.newest_quarantined_in_scope
SELECT ingress_quarantine.receipt_id
FROM ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
WHERE ingress_quarantine.org = ? AND ingress_quarantine.installation = ?
ORDER BY ingress_quarantine.receipt_id DESC
LIMIT ?;
-- the_org, the_installation, 20

-- operate.oldest
SELECT min((SELECT work_ready.due
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ? AND work_ready.shelf = ? AND work_ready.org = scopes.org AND work_ready.installation = scopes.installation
ORDER BY work_ready.due
LIMIT ?)) AS min_1
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]' )) AS scopes;
-- family, 0, 1, scopes (rows as JSON)

-- operate.principal_by_id
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state, principal.created_at, principal.updated_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN principal FORCE INDEX (`PRIMARY`, principal_name_key) ON true = 1
WHERE principal.id = wanted.value
ORDER BY principal.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.principal_by_id_in_scope
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state, principal.created_at, principal.updated_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN principal FORCE INDEX (`PRIMARY`, principal_name_key) ON true = 1
WHERE principal.id = wanted.value AND principal.org = ? AND principal.installation = ?
ORDER BY principal.id
LIMIT ?;
-- wanted (rows as JSON), the_org, the_installation, 500

-- operate.remote_link_by_id
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.slot, remote_link.state, remote_link.version, remote_link.authority, remote_link.created_at, remote_link.updated_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON true = 1
WHERE remote_link.id = wanted.value
ORDER BY remote_link.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.remote_link_by_id_in_scope
SELECT remote_link.id, remote_link.org, remote_link.installation, remote_link.principal_id, remote_link.generation, remote_link.kind, remote_link.local_ref, remote_link.remote_id, remote_link.slot, remote_link.state, remote_link.version, remote_link.authority, remote_link.created_at, remote_link.updated_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN remote_link FORCE INDEX (`PRIMARY`, remote_link_local_key, remote_link_remote_key) ON true = 1
WHERE remote_link.id = wanted.value AND remote_link.org = ? AND remote_link.installation = ?
ORDER BY remote_link.id
LIMIT ?;
-- wanted (rows as JSON), the_org, the_installation, 500

-- operate.turned_away
SELECT ingress_rejection.reason, CAST(sum(ingress_rejection.count) AS SIGNED INTEGER) AS sum_1, max(ingress_rejection.last_at) AS max_1
FROM ingress_rejection FORCE INDEX (`PRIMARY`)
GROUP BY ingress_rejection.reason
ORDER BY ingress_rejection.reason;
-- no parameters

-- operate.turned_away_in_scope
SELECT ingress_rejection.reason, CAST(sum(ingress_rejection.count) AS SIGNED INTEGER) AS sum_1, max(ingress_rejection.last_at) AS max_1
FROM ingress_rejection FORCE INDEX (`PRIMARY`)
WHERE ingress_rejection.org = ? AND ingress_rejection.installation = ?
GROUP BY ingress_rejection.reason
ORDER BY ingress_rejection.reason;
-- the_org, the_installation

-- operate.unresolved
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane, min(CASE WHEN (looked_into.state IN (?, ?, ?, ?)) THEN ? ELSE ? END) AS min_1
FROM work_item AS looked_into INNER
JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number) ON effect_attempt.id = looked_into.subject_id INNER
JOIN work_item AS effect ON effect.id = effect_attempt.work_id
LEFT OUTER
JOIN disposition FORCE INDEX (`PRIMARY`, disposition_successor_item_id_key) ON disposition.attempt_id = effect_attempt.id
LEFT OUTER
JOIN command_end FORCE INDEX (`PRIMARY`) ON command_end.command_id = effect_attempt.subject_id
WHERE looked_into.family = 'reconcile' AND effect_attempt.outcome IN (?, ?) AND command_end.command_id IS NULL AND (disposition.attempt_id IS NULL OR disposition.verdict = ? AND disposition.successor_item_id IS NULL)
GROUP BY effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane
ORDER BY effect_attempt.ended_at, effect_attempt.id
LIMIT ?;
-- 'cancelled', 'dead', 'skipped', 'succeeded', 1, 0, 'OUTCOME_UNKNOWN', 'REPLAY_SAFE_RETRY', 'no_effect_proven', 101

-- operate.unresolved_in_scope
SELECT effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane, min(CASE WHEN (looked_into.state IN (?, ?, ?, ?)) THEN ? ELSE ? END) AS min_1
FROM work_item AS looked_into INNER
JOIN effect_attempt FORCE INDEX (`PRIMARY`, effect_attempt_number) ON effect_attempt.id = looked_into.subject_id INNER
JOIN work_item AS effect ON effect.id = effect_attempt.work_id
LEFT OUTER
JOIN disposition FORCE INDEX (`PRIMARY`, disposition_successor_item_id_key) ON disposition.attempt_id = effect_attempt.id
LEFT OUTER
JOIN command_end FORCE INDEX (`PRIMARY`) ON command_end.command_id = effect_attempt.subject_id
WHERE looked_into.family = 'reconcile' AND effect_attempt.outcome IN (?, ?) AND command_end.command_id IS NULL AND (disposition.attempt_id IS NULL OR disposition.verdict = ? AND disposition.successor_item_id IS NULL) AND effect.org = ? AND effect.installation = ?
GROUP BY effect_attempt.id, effect_attempt.subject_id, effect_attempt.operation, effect_attempt.ended_at, effect_attempt.reason, effect.target_lane
ORDER BY effect_attempt.ended_at, effect_attempt.id
LIMIT ?;
-- 'cancelled', 'dead', 'skipped', 'succeeded', 1, 0, 'OUTCOME_UNKNOWN', 'REPLAY_SAFE_RETRY', 'no_effect_proven', the_org, the_installation, 101

-- operate.waiting_in_lanes
SELECT count(DISTINCT bounded.item_id) AS count_1
FROM (SELECT work_lane_entry.item_id AS item_id
FROM work_lane_entry FORCE INDEX (`PRIMARY`, work_lane_entry_next)
LIMIT ?) AS bounded;
-- entries

-- operate.work_item_by_id
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.updated_at, work_item.finished_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.id = wanted.value
ORDER BY work_item.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.work_item_by_subject_id
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.updated_at, work_item.finished_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.subject_id = wanted.value
ORDER BY work_item.created_at, work_item.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.work_item_history_by_id
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, work_item_history.attempts, work_item_history.claims, work_item_history.failures, work_item_history.deferrals, work_item_history.expiries, work_item_history.lease_owner, work_item_history.ownership_epoch, work_item_history.failure_class, work_item_history.summary, work_item_history.replay_of, work_item_history.predecessor, work_item_history.created_at, work_item_history.finished_at, work_item_history.moved_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN work_item_history FORCE INDEX (`PRIMARY`, work_item_history_predecessor, work_item_history_subject_id) ON true = 1
WHERE work_item_history.id = wanted.value
ORDER BY work_item_history.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- operate.work_item_history_by_subject_id
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, work_item_history.attempts, work_item_history.claims, work_item_history.failures, work_item_history.deferrals, work_item_history.expiries, work_item_history.lease_owner, work_item_history.ownership_epoch, work_item_history.failure_class, work_item_history.summary, work_item_history.replay_of, work_item_history.predecessor, work_item_history.created_at, work_item_history.finished_at, work_item_history.moved_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( value LONGTEXT PATH '$[0]' )) AS wanted STRAIGHT_JOIN work_item_history FORCE INDEX (`PRIMARY`, work_item_history_predecessor, work_item_history_subject_id) ON true = 1
WHERE work_item_history.subject_id = wanted.value
ORDER BY work_item_history.created_at, work_item_history.id
LIMIT ?;
-- wanted (rows as JSON), 500

-- ownership.read
SELECT work_ownership.family, work_ownership.deployment, work_ownership.release_digest, work_ownership.epoch, work_ownership.operation_id, work_ownership.state, work_ownership.changed_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( family LONGTEXT PATH '$[0]' )) AS families STRAIGHT_JOIN work_ownership FORCE INDEX (`PRIMARY`) ON work_ownership.family = families.family;
-- families (rows as JSON)

-- ownership.read_all
SELECT work_ownership.family, work_ownership.deployment, work_ownership.release_digest, work_ownership.epoch, work_ownership.operation_id, work_ownership.state, work_ownership.changed_at
FROM work_ownership FORCE INDEX (`PRIMARY`);
-- no parameters

-- principals.by_name
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', called LONGTEXT PATH '$[2]' )) AS names STRAIGHT_JOIN principal FORCE INDEX (`PRIMARY`, principal_name_key) ON principal.org = names.org AND principal.installation = names.installation AND principal.name = names.called
ORDER BY principal.id;
-- names (rows as JSON)

-- principals.end_generation
UPDATE binding_generation FORCE INDEX (`PRIMARY`, binding_generation_id_key)
SET state=?, ended_at=?, reason=?
WHERE binding_generation.principal_id = ? AND binding_generation.generation = ? AND binding_generation.state = ?;
-- 'ended', now_us, why, the_principal_id, the_generation, 'current'

-- principals.erase_tokens
UPDATE token_version FORCE INDEX (`PRIMARY`)
SET sealed=NULL
WHERE token_version.principal_id = ? AND token_version.sealed IS NOT NULL AND NOT (token_version.generation = ? AND token_version.version = ?);
-- the_principal_id, but_generation, but_version

-- principals.generation
SELECT binding_generation.principal_id, binding_generation.generation, binding_generation.id, binding_generation.state, binding_generation.remote_subject, binding_generation.remote_tenant, binding_generation.created_at, binding_generation.ended_at, binding_generation.reason
FROM binding_generation FORCE INDEX (`PRIMARY`, binding_generation_id_key)
WHERE binding_generation.principal_id = ? AND binding_generation.generation = ?;
-- the_principal_id, the_generation

-- principals.get
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN principal FORCE INDEX (`PRIMARY`, principal_name_key) ON true = 1
WHERE principal.id = ids.id
ORDER BY principal.id;
-- ids (rows as JSON)

-- principals.lock
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN principal FORCE INDEX (`PRIMARY`, principal_name_key) ON true = 1
WHERE principal.id = ids.id
ORDER BY principal.id
FOR UPDATE /*!80001 OF principal */;
-- ids (rows as JSON)

-- principals.lock_by_name
SELECT principal.id, principal.org, principal.installation, principal.pack, principal.name, principal.current_generation, principal.state
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', called LONGTEXT PATH '$[2]' )) AS names STRAIGHT_JOIN principal FORCE INDEX (`PRIMARY`, principal_name_key) ON principal.org = names.org AND principal.installation = names.installation AND principal.name = names.called
ORDER BY principal.id
FOR UPDATE /*!80001 OF principal */;
-- names (rows as JSON)

-- principals.set
UPDATE principal FORCE INDEX (`PRIMARY`, principal_name_key)
SET current_generation=?, state=?, updated_at=?
WHERE principal.id = ?;
-- new_generation, new_state, now_us, the_id

-- principals.tokens
SELECT token_version.principal_id, token_version.generation, token_version.version, token_version.sealed, token_version.key_id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN (token_version FORCE INDEX (`PRIMARY`) INNER
JOIN principal FORCE INDEX (`PRIMARY`, principal_name_key) ON principal.id = token_version.principal_id AND principal.current_generation = token_version.generation AND principal.state = ?) ON true = 1
WHERE token_version.sealed IS NOT NULL AND token_version.principal_id = ids.id;
-- ids (rows as JSON), 'connected'

-- principals.tokens_under_other_keys
SELECT token_version.principal_id, token_version.generation, token_version.version, token_version.sealed, token_version.key_id
FROM token_version FORCE INDEX (`PRIMARY`) INNER
JOIN principal FORCE INDEX (`PRIMARY`, principal_name_key) ON principal.id = token_version.principal_id AND principal.current_generation = token_version.generation AND principal.state = ?
WHERE token_version.sealed IS NOT NULL AND token_version.key_id != ?
ORDER BY token_version.principal_id;
-- 'connected', key

-- rewrap.event_object_page
SELECT event_object.event_id AS name, event_object.sealed, event_object.key_id
FROM event_object FORCE INDEX (`PRIMARY`)
WHERE event_object.event_id > ? AND event_object.key_id != ? AND event_object.sealed IS NOT NULL
ORDER BY event_object.event_id
LIMIT ?;
-- after, current, rows

-- rewrap.event_object_replace
UPDATE event_object FORCE INDEX (`PRIMARY`)
SET sealed=?, key_id=?
WHERE event_object.event_id = ? AND event_object.key_id = ? AND event_object.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.event_page
SELECT event.id AS name, event.sealed, event.key_id
FROM event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt)
WHERE event.id > ? AND event.key_id != ? AND event.sealed IS NOT NULL
ORDER BY event.id
LIMIT ?;
-- after, current, rows

-- rewrap.event_replace
UPDATE event FORCE INDEX (`PRIMARY`, event_identity_key, event_receipt)
SET sealed=?, key_id=?
WHERE event.id = ? AND event.key_id = ? AND event.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_page_page
SELECT ingress_page.id AS name, ingress_page.sealed, ingress_page.key_id
FROM ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number)
WHERE ingress_page.id > ? AND ingress_page.key_id != ? AND ingress_page.sealed IS NOT NULL
ORDER BY ingress_page.id
LIMIT ?;
-- after, current, rows

-- rewrap.ingress_page_replace
UPDATE ingress_page FORCE INDEX (`PRIMARY`, ingress_page_body, ingress_page_number)
SET sealed=?, key_id=?
WHERE ingress_page.id = ? AND ingress_page.key_id = ? AND ingress_page.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_quarantine_page
SELECT ingress_quarantine.receipt_id AS name, ingress_quarantine.sealed, ingress_quarantine.key_id
FROM ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
WHERE ingress_quarantine.receipt_id > ? AND ingress_quarantine.key_id != ? AND ingress_quarantine.sealed IS NOT NULL
ORDER BY ingress_quarantine.receipt_id
LIMIT ?;
-- after, current, rows

-- rewrap.ingress_quarantine_replace
UPDATE ingress_quarantine FORCE INDEX (`PRIMARY`, ingress_quarantine_body, ingress_quarantine_receipt_id_key)
SET sealed=?, key_id=?
WHERE ingress_quarantine.receipt_id = ? AND ingress_quarantine.key_id = ? AND ingress_quarantine.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.ingress_receipt_page
SELECT ingress_receipt.id AS name, ingress_receipt.sealed, ingress_receipt.key_id
FROM ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body)
WHERE ingress_receipt.id > ? AND ingress_receipt.key_id != ? AND ingress_receipt.sealed IS NOT NULL
ORDER BY ingress_receipt.id
LIMIT ?;
-- after, current, rows

-- rewrap.ingress_receipt_replace
UPDATE ingress_receipt FORCE INDEX (`PRIMARY`, ingress_receipt_body)
SET sealed=?, key_id=?
WHERE ingress_receipt.id = ? AND ingress_receipt.key_id = ? AND ingress_receipt.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- rewrap.webhook_secret_page
SELECT webhook_secret.id AS name, webhook_secret.sealed, webhook_secret.key_id
FROM webhook_secret FORCE INDEX (`PRIMARY`, webhook_secret_route)
WHERE webhook_secret.id > ? AND webhook_secret.key_id != ? AND webhook_secret.sealed IS NOT NULL
ORDER BY webhook_secret.id
LIMIT ?;
-- after, current, rows

-- rewrap.webhook_secret_replace
UPDATE webhook_secret FORCE INDEX (`PRIMARY`, webhook_secret_route)
SET sealed=?, key_id=?
WHERE webhook_secret.id = ? AND webhook_secret.key_id = ? AND webhook_secret.sealed IS NOT NULL;
-- new_sealed, new_key, the_name, the_key

-- schema.compatible_from
SELECT doonce_schema.compatible_from
FROM doonce_schema FORCE INDEX (`PRIMARY`);
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
FROM credential FORCE INDEX (`PRIMARY`, credential_id_key)
WHERE credential.hash = ?;
-- the_hash

-- trust.lock_by_id
SELECT credential.hash, credential.id, credential.org, credential.installation, credential.capabilities, credential.state, credential.note, credential.created_at, credential.revoked_at
FROM credential FORCE INDEX (`PRIMARY`, credential_id_key)
WHERE credential.id = ?
FOR UPDATE;
-- the_id

-- trust.read_all
SELECT credential.hash, credential.id, credential.org, credential.installation, credential.capabilities, credential.state, credential.note, credential.created_at, credential.revoked_at
FROM credential FORCE INDEX (`PRIMARY`, credential_id_key)
ORDER BY credential.created_at, credential.id;
-- no parameters

-- trust.revoke
UPDATE credential FORCE INDEX (`PRIMARY`, credential_id_key)
SET state=?, revoked_at=?
WHERE credential.id = ? AND credential.state = ?;
-- 'revoked', now_us, the_id, 'active'

-- work.advance
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS due STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
SET work_item.run_after=?, work_item.updated_at=?
WHERE work_item.id = due.id;
-- due (rows as JSON), now_us, now_us

-- work.candidates
SELECT work_ready.family, work_ready.shelf, work_ready.org, work_ready.installation, work_ready.due, work_ready.item_id, work_ready.source_lane, work_ready.target_lane
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ? AND work_ready.shelf = ? AND work_ready.org = ? AND work_ready.installation = ? AND work_ready.due >= ? AND work_ready.due <= CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)
ORDER BY work_ready.due, work_ready.item_id
LIMIT ?
FOR UPDATE SKIP LOCKED;
-- family, shelf, org, installation, since, rows

-- work.count_dispatch
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', until_us BIGINT PATH '$[1]' )) AS marks STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
SET work_item.attempts=(work_item.attempts + ?), work_item.lease_until=marks.until_us, work_item.updated_at=?
WHERE work_item.id = marks.id;
-- marks (rows as JSON), 1, now_us

-- work.drop_ready
DELETE
FROM work_ready USING JSON_TABLE( ? , '$[*]' COLUMNS ( family LONGTEXT PATH '$[0]', shelf BIGINT PATH '$[1]', org LONGTEXT PATH '$[2]', installation LONGTEXT PATH '$[3]', due BIGINT PATH '$[4]', item_id LONGTEXT PATH '$[5]' )) AS `keys` STRAIGHT_JOIN work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = `keys`.family AND work_ready.shelf = `keys`.shelf AND work_ready.org = `keys`.org AND work_ready.installation = `keys`.installation AND work_ready.due = `keys`.due AND work_ready.item_id = `keys`.item_id;
-- keys (rows as JSON)

-- work.for_subject
SELECT work_item.id, work_item.source_lane, work_item.target_lane
FROM work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.subject_id = ? AND work_item.family = ?;
-- subject_id, family

-- work.forget_claimers
DELETE
FROM work_claimer USING JSON_TABLE( ? , '$[*]' COLUMNS ( owner LONGTEXT PATH '$[0]', family LONGTEXT PATH '$[1]' )) AS old STRAIGHT_JOIN work_claimer FORCE INDEX (`PRIMARY`)
WHERE work_claimer.owner = old.owner AND work_claimer.family = old.family AND work_claimer.claimed_at < ?;
-- old (rows as JSON), before_us

-- work.forget_leases
DELETE
FROM work_lease USING JSON_TABLE( ? , '$[*]' COLUMNS ( token LONGTEXT PATH '$[0]' )) AS tokens STRAIGHT_JOIN work_lease FORCE INDEX (`PRIMARY`, work_lease_due)
WHERE work_lease.token = tokens.token;
-- tokens (rows as JSON)

-- work.in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item_history FORCE INDEX (`PRIMARY`, work_item_history_predecessor, work_item_history_subject_id) ON true = 1
WHERE work_item_history.id = ids.id;
-- ids (rows as JSON)

-- work.keep_in_history
INSERT INTO work_item_history (id, family, org, installation, subject_kind, subject_id, view_digest, capability_version, source_lane, source_position, target_lane, target_position, state, attempts, claims, failures, deferrals, expiries, lease_owner, ownership_epoch, failure_class, summary, replay_of, predecessor, created_at, finished_at, moved_at) SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.attempts, work_item.claims, work_item.failures, work_item.deferrals, work_item.expiries, work_item.lease_owner, work_item.ownership_epoch, work_item.failure_class, work_item.summary, work_item.replay_of, work_item.predecessor, work_item.created_at, work_item.finished_at, ? AS moved_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.id = ids.id;
-- now_us, ids (rows as JSON)

-- work.leases_over
SELECT work_lease.token, work_lease.items
FROM work_lease FORCE INDEX (`PRIMARY`, work_lease_due)
WHERE work_lease.family = ? AND work_lease.due <= CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)
ORDER BY work_lease.due
LIMIT 64
FOR UPDATE SKIP LOCKED;
-- family

-- work.leave_for_history
DELETE
FROM work_item USING JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.id = ids.id;
-- ids (rows as JSON)

-- work.lock_claimed
SELECT work_item.id, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.id = ids.id
ORDER BY work_item.id
FOR UPDATE /*!80001 OF work_item */;
-- ids (rows as JSON)

-- work.lock_claimer
SELECT work_claimer.token, work_claimer.items
FROM work_claimer FORCE INDEX (`PRIMARY`)
WHERE work_claimer.owner = ? AND work_claimer.family = ?
FOR UPDATE;
-- owner, family

-- work.lock_free_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.id = ids.id
ORDER BY work_item.id
FOR UPDATE /*!80001 OF work_item */ SKIP LOCKED;
-- ids (rows as JSON)

-- work.lock_in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM work_item_history FORCE INDEX (`PRIMARY`, work_item_history_predecessor, work_item_history_subject_id)
WHERE work_item_history.id = ?
FOR UPDATE;
-- item

-- work.lock_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.id = ids.id
ORDER BY work_item.id
FOR UPDATE /*!80001 OF work_item */;
-- ids (rows as JSON)

-- work.lock_old
SELECT work_item.id, work_item.family, work_item.subject_kind, work_item.subject_id, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.finished_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.id = ids.id
ORDER BY work_item.id
FOR UPDATE /*!80001 OF work_item */ SKIP LOCKED;
-- ids (rows as JSON)

-- work.lock_walk
SELECT work_retention.name, work_retention.passed, work_retention.moved, work_retention.seen_since, work_retention.overdue_since, work_retention.walked_at
FROM work_retention FORCE INDEX (`PRIMARY`)
WHERE work_retention.name = ?
FOR UPDATE;
-- walk

-- work.made_at
SELECT work_item.id, work_item.created_at
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.id = ids.id;
-- ids (rows as JSON)

-- work.next_hint
SELECT work_ready.org, work_ready.installation
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ? AND work_ready.shelf = ? AND (work_ready.org > ? OR work_ready.org = ? AND work_ready.installation >= ?)
ORDER BY work_ready.org, work_ready.installation, work_ready.due
LIMIT 1;
-- family, shelf, org, org, installation

-- work.note
UPDATE work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
SET summary=(concat(coalesce(work_item.summary, ?), ?))
WHERE work_item.id = ?;
-- '', note, item

-- work.old_claimers
SELECT work_claimer.owner, work_claimer.family
FROM work_claimer FORCE INDEX (`PRIMARY`)
WHERE work_claimer.claimed_at < ?;
-- before_us

-- work.page_of_old
SELECT work_item.id, work_item.family, work_item.subject_kind, work_item.subject_id, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.finished_at
FROM work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.id > ? AND work_item.id < ?
ORDER BY work_item.id
LIMIT ?;
-- after, before, rows

-- work.plain_items
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.id = ids.id;
-- ids (rows as JSON)

-- work.recent_claimers
SELECT work_claimer.owner, max(work_claimer.claimed_at) AS claimed_at
FROM work_claimer FORCE INDEX (`PRIMARY`)
WHERE work_claimer.claimed_at > ?
GROUP BY work_claimer.owner
ORDER BY work_claimer.owner;
-- after_us

-- work.renew
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', until_us BIGINT PATH '$[1]' )) AS leases STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
SET work_item.lease_until=leases.until_us, work_item.updated_at=?
WHERE work_item.id = leases.id;
-- leases (rows as JSON), now_us

-- work.request_cancel
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS ids STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
SET work_item.cancel_requested=?, work_item.updated_at=?
WHERE work_item.id = ids.id;
-- ids (rows as JSON), 1, now_us

-- work.save_claimer
UPDATE work_claimer FORCE INDEX (`PRIMARY`)
SET token=?, items=?, claimed_at=?
WHERE work_claimer.owner = ? AND work_claimer.family = ?;
-- new_token, new_items, now_us, claimer, claimed_family

-- work.save_walk
UPDATE work_retention FORCE INDEX (`PRIMARY`)
SET passed=?, moved=(work_retention.moved + ?), seen_since=?, overdue_since=?, walked_at=?
WHERE work_retention.name = ?;
-- now_passed, more, now_seen, now_overdue, now_walked, walk

-- work.settle
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', state LONGTEXT PATH '$[1]', run_after BIGINT PATH '$[2]', claims BIGINT PATH '$[3]', failures BIGINT PATH '$[4]', first_failed_at BIGINT PATH '$[5]', deferrals BIGINT PATH '$[6]', first_deferred_at BIGINT PATH '$[7]', expiries BIGINT PATH '$[8]', failure_class LONGTEXT PATH '$[9]', summary LONGTEXT PATH '$[10]', finished_at BIGINT PATH '$[11]' )) AS ends STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
SET work_item.state=ends.state, work_item.run_after=ends.run_after, work_item.claims=ends.claims, work_item.failures=ends.failures, work_item.first_failed_at=ends.first_failed_at, work_item.deferrals=ends.deferrals, work_item.first_deferred_at=ends.first_deferred_at, work_item.expiries=ends.expiries, work_item.alone=?, work_item.failure_class=ends.failure_class, work_item.summary=ends.summary, work_item.updated_at=?, work_item.finished_at=ends.finished_at
WHERE work_item.id = ends.id;
-- ends (rows as JSON), 0, now_us

-- work.still_running
SELECT work_item.family, work_item.capability_version, work_item.org, work_item.installation, work_item.lease_until, work_item.id, work_item.source_lane, work_item.target_lane
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', token LONGTEXT PATH '$[1]' )) AS claimed STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON work_item.id = claimed.id AND work_item.lease_token = claimed.token AND work_item.state = ?;
-- claimed (rows as JSON), 'processing'

-- work.succeed
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', summary LONGTEXT PATH '$[1]' )) AS ends STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
SET work_item.state='succeeded', work_item.expiries=0, work_item.alone=0, work_item.failure_class=NULL, work_item.summary=ends.summary, work_item.updated_at=?, work_item.finished_at=?
WHERE work_item.id = ends.id;
-- ends (rows as JSON), now_us, now_us

-- work.successor
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.predecessor = ?;
-- predecessor

-- work.successor_in_history
SELECT work_item_history.id, work_item_history.family, work_item_history.org, work_item_history.installation, work_item_history.subject_kind, work_item_history.subject_id, work_item_history.view_digest, work_item_history.capability_version, work_item_history.source_lane, work_item_history.source_position, work_item_history.target_lane, work_item_history.target_position, work_item_history.state, 0 AS run_after, work_item_history.attempts, work_item_history.claims, work_item_history.failures, NULL AS first_failed_at, work_item_history.deferrals, NULL AS first_deferred_at, work_item_history.expiries, 0 AS alone, work_item_history.lease_owner, NULL AS lease_token, 0 AS lease_until, work_item_history.ownership_epoch, 0 AS cancel_requested, work_item_history.predecessor
FROM work_item_history FORCE INDEX (`PRIMARY`, work_item_history_predecessor, work_item_history_subject_id)
WHERE work_item_history.predecessor = ?;
-- predecessor

-- work.suspects
SELECT work_ready.item_id
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ? AND work_ready.shelf = 1
LIMIT 1;
-- family

-- work.sweep
SELECT work_item.id, work_item.family, work_item.org, work_item.installation, work_item.subject_kind, work_item.subject_id, work_item.view_digest, work_item.capability_version, work_item.source_lane, work_item.source_position, work_item.target_lane, work_item.target_position, work_item.state, work_item.run_after, work_item.attempts, work_item.claims, work_item.failures, work_item.first_failed_at, work_item.deferrals, work_item.first_deferred_at, work_item.expiries, work_item.alone, work_item.lease_owner, work_item.lease_token, work_item.lease_until, work_item.ownership_epoch, work_item.cancel_requested, work_item.predecessor
FROM work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
WHERE work_item.id > ?
ORDER BY work_item.id
LIMIT ?;
-- after, rows

-- work.take
UPDATE JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]', expiries BIGINT PATH '$[1]' )) AS taken STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id)
SET work_item.state=?, work_item.claims=(work_item.claims + ?), work_item.expiries=taken.expiries, work_item.alone=?, work_item.lease_owner=?, work_item.lease_token=?, work_item.lease_until=?, work_item.ownership_epoch=?, work_item.updated_at=?
WHERE work_item.id = taken.id;
-- taken (rows as JSON), 'processing', 1, alone, owner, token, until_us, epoch, now_us

-- work.under_way
SELECT work_item.subject_id
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( id LONGTEXT PATH '$[0]' )) AS subjects STRAIGHT_JOIN work_item FORCE INDEX (`PRIMARY`, work_item_family, work_item_predecessor, work_item_subject_id) ON true = 1
WHERE work_item.subject_id = subjects.id AND (work_item.state NOT IN (?, ?, ?, ?));
-- subjects (rows as JSON), 'cancelled', 'dead', 'skipped', 'succeeded'

-- work.waiting
SELECT scopes.org, scopes.installation
FROM JSON_TABLE( ? , '$[*]' COLUMNS ( org LONGTEXT PATH '$[0]', installation LONGTEXT PATH '$[1]', since BIGINT PATH '$[2]' )) AS scopes
WHERE (SELECT work_ready.due
FROM work_ready FORCE INDEX (`PRIMARY`)
WHERE work_ready.family = ? AND work_ready.shelf = ? AND work_ready.org = scopes.org AND work_ready.installation = scopes.installation AND work_ready.due >= scopes.since
ORDER BY work_ready.due
LIMIT 1) <= CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED);
-- scopes (rows as JSON), family, shelf

-- work.walk
SELECT work_retention.name, work_retention.passed, work_retention.moved, work_retention.seen_since, work_retention.overdue_since, work_retention.walked_at
FROM work_retention FORCE INDEX (`PRIMARY`)
WHERE work_retention.name = ?;
-- walk
