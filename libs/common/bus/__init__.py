"""The bus, FastStream over NATS: one way to connect, one to consume, one to answer, one to ask, one to tell.

connection  a broker that reconnects for ever
streams     what JetStream keeps, declared once
consume     durable messages: claim, handle, settle, acknowledge
answer      questions: always a typed reply, within the deadline
ask         the other side of a question
relay       facts from the outbox to the taps
"""
