"""The application's side: an outbox in its own transaction, a relay, an inbox (PROTOCOL F, K).

outbox   emit an intent beside the application's change; withdraw it
relay    hand the outbox over to the service until a durable answer
inbox    apply what became of a command, once; dedupe any handler
asgi     the inbox as an HTTP endpoint
schema   the three tables
"""
