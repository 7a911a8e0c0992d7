// The MCP SDKs of others, unmodified: they find the service from the 401 of examples/mcp-server, come with a document instead of a
// registration, sign a person in, call a tool, and refresh.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as FormerClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FormerTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t from 'tap'
import { startIdentity } from '../../testing/index.ts'
import { findFreePort } from '../helpers/port.ts'
import { Browser } from '../oidc/browser.ts'

const PERSON = { account: 'ann', password: 'correct horse' }
const REDIRECT = 'http://127.0.0.1:53999/callback'

const port = await findFreePort()
const resource = `http://127.0.0.1:${port}/mcp`
const kit = await startIdentity({
  t,
  rateLimit: false,
  oidc: { documents: { hosts: ['agent.example'] } },
  resources: [{ id: resource, name: 'Notes', scopes: { 'notes:read': 'read your notes' }, documents: ['notes:read'] }]
})
const { url } = await kit.listen()
await kit.app.identity.users.create({ data: PERSON })
const server = spawn(process.execPath, [new URL('../../examples/mcp-server/server.js', import.meta.url).pathname], { env: { ...process.env, ISSUER: url, PORT: String(port) }, stdio: ['ignore', 'pipe', 'inherit'] })
t.teardown(() => server.kill())
await once(server.stdout, 'data')

/** What an SDK asks of the program that uses it. */
function createProvider (agent) {
  const kept = { saved: 0 }
  return {
    kept,
    redirectUrl: REDIRECT,
    clientMetadataUrl: agent.clientId,
    clientMetadata: { redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'], client_name: 'not used' },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => { kept.client = client },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => {
      kept.tokens = tokens
      kept.saved++
    },
    saveCodeVerifier: (verifier) => { kept.verifier = verifier },
    codeVerifier: () => kept.verifier,
    discoveryState: () => kept.discovery,
    saveDiscoveryState: (discovery) => { kept.discovery = discovery },
    async redirectToAuthorization (to) {
      const signedIn = await (await new Browser(url).open(to.href)).submit(PERSON)
      kept.left = (await signedIn.submit({ decision: 'allow' })).left
    }
  }
}

for (const [name, AnyClient, Transport, readCode, refreshes] of [
  ['@modelcontextprotocol/client', Client, StreamableHTTPClientTransport, (params) => params, true],
  // It requests the scopes of the challenge only, and so no `offline_access`.
  ['@modelcontextprotocol/sdk', FormerClient, FormerTransport, (params) => params.get('code'), false]
]) {
  await t.test(name, async (t) => {
    const agent = kit.agent({ client_name: name, redirect_uris: ['http://127.0.0.1/callback'] })
    const provider = createProvider(agent)
    const createTransport = () => new Transport(new URL(resource), { authProvider: provider })
    const transport = createTransport()
    await t.rejects(new AnyClient({ name, version: '1' }).connect(transport), /Unauthorized/)
    await transport.finishAuth(readCode(provider.kept.left.searchParams))
    const client = new AnyClient({ name, version: '1' })
    await client.connect(createTransport())
    const expected = { content: [{ type: 'text', text: `One note of ann, for ${agent.clientId}` }] }
    t.match(await client.callTool({ name: 'list_notes', arguments: {} }), expected)
    t.match(provider.kept, { client: { client_id: agent.clientId }, tokens: { scope: 'notes:read' }, saved: 1 })
    t.equal(provider.kept.tokens.refresh_token !== undefined, refreshes)
    if (!refreshes) return await client.close()
    kit.clock.advance(3_700_000)
    // The server of the example remembers an answer for a second.
    await sleep(1_500)
    t.match(await client.callTool({ name: 'list_notes', arguments: {} }), expected)
    t.equal(provider.kept.saved, 2, 'refreshed')
    await client.close()
  })
}
