// A client of the agentmemory wire format: the requests that first-party providers send, the answers that they read.
// It speaks HTTP alone: `node agentmemory_client.mjs http://127.0.0.1:3111/ [secret]`.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

const [, , address, secret] = process.argv;

class AgentMemoryClient {
  constructor(address, secret, defaultProject) {
    this.base = address.replace(/\/+$/, "");
    this.secret = secret;
    this.defaultProject = defaultProject;
  }

  async request(method, path, body) {
    const headers = { Accept: "application/json" };
    if (this.secret) headers.Authorization = `Bearer ${this.secret}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const answer = await fetch(`${this.base}/agentmemory${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await answer.text();
    if (!answer.ok) throw Object.assign(new Error(`${answer.status} ${path} ${text}`), { status: answer.status });
    return text ? JSON.parse(text) : undefined;
  }

  async isHealthy() {
    const body = await this.request("GET", "/health");
    return body.ok === true || String(body.status).toLowerCase() === "ok";
  }

  async openSession(metadata) {
    const body = await this.request("POST", "/session/start", { project: this.defaultProject, metadata });
    const id = body.id ?? body.sessionId ?? body.session_id;
    assert.ok(id, "a session without an id");
    return { id, startedAt: body.startedAt ?? body.started_at, metadata: body.metadata };
  }

  closeSession(sessionId) {
    return this.request("POST", "/session/end", { project: this.defaultProject, sessionId });
  }

  async save(project, content, { tags, metadata, sessionId } = {}) {
    return record(await this.request("POST", "/remember", { project, content, tags, metadata, sessionId }));
  }

  async search(project, query, { limit, tags, sessionId } = {}) {
    const body = await this.request("POST", "/smart-search", { project, query, topK: limit, tags, sessionId });
    return (body.results ?? body.matches ?? body.hits).map(record);
  }

  async context(project, { query, purpose, sessionId, maxTokens } = {}) {
    const body = await this.request("POST", "/context", { project, query, purpose, sessionId, tokenBudget: maxTokens });
    const content = body.content ?? body.context ?? body.text;
    return { content, tokens: body.approxTokens ?? body.approx_tokens, references: (body.references ?? []).map(record) };
  }

  forget(id) {
    assert.notEqual(id, "");
    return this.request("POST", "/forget", { project: this.defaultProject, filter: { id } });
  }

  async sessions(projectId, limit) {
    const query = new URLSearchParams({ projectId, limit: String(limit) });
    return (await this.request("GET", `/sessions?${query}`)).sessions;
  }
}

function record(body) {
  const id = body.id ?? body.observationId ?? body.observation_id ?? body.memoryId ?? body.memory_id;
  assert.ok(id, "a record without an id");
  return { ...body, id, content: body.content ?? body.text, score: body.score ?? body.similarity };
}

const client = new AgentMemoryClient(address, secret, "ever-works");
const project = `site-${randomUUID()}`;

assert.ok(await client.isHealthy(), "health");

const session = await client.openSession({ projectId: project, source: "node", workSlug: project });
assert.equal(session.metadata.source, "node");
assert.ok(!Number.isNaN(Date.parse(session.startedAt)));

const metadata = { workId: "w-1", itemCount: 12, completedAt: new Date().toISOString() };
const saved = await client.save(project, "The sitemap job fails when the feed has no items.", {
  tags: ["pipeline-run", `work:${project}`],
  metadata,
  sessionId: session.id,
});
assert.deepEqual(saved.metadata, metadata);
assert.equal(saved.sessionId, session.id);
const other = await client.save(project, "Images are resized before they are uploaded.");

const found = await client.search(project, "why does the sitemap job fail", { limit: 5, sessionId: session.id });
assert.equal(found[0].id, saved.id);
assert.ok(found[0].score >= 0 && found[0].score <= 1);
const tagged = await client.search(project, "*", { tags: [`work:${project}`], limit: 10 });
assert.deepEqual(tagged.map((entry) => entry.id), [saved.id]);

const context = await client.context(project, { query: "the sitemap job fails", purpose: "work-generation", maxTokens: 300 });
assert.match(context.content, /feed has no items/);
assert.ok(context.tokens <= 300);
assert.equal(context.references[0].id, saved.id);

await client.forget(saved.id);
await client.forget(saved.id);
const left = await client.search(project, "why does the sitemap job fail", { limit: 5 });
assert.deepEqual(left.map((entry) => entry.id), [other.id]);
assert.doesNotMatch((await client.context(project, { query: "the sitemap job fails" })).content, /feed has no items/);

await client.closeSession(session.id);
await client.closeSession(session.id);
const [listed] = await client.sessions(project, 10);
assert.equal(listed.id, session.id);
assert.ok(listed.endedAt);

await assert.rejects(client.save(project, "   "), { status: 400 });
console.log("health open save search context forget close list");
