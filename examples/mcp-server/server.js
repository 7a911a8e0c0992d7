// An MCP server in Fastify. Agents find the service from its 401, sign people in there, and come back with a token for this server only.
import Fastify from 'fastify'
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server'
// In an app of your own: import remoteAuth from 'fastify-identity/remote'
import remoteAuth from '../../plugins/remote.ts'

const { ISSUER = 'http://127.0.0.1:3000', PORT = '8084' } = process.env

// Agents call this URL. It is also the id of the resource at the service.
const resource = `http://127.0.0.1:${PORT}/mcp`

const app = Fastify()
await app.register(remoteAuth, { issuer: ISSUER })

/** The tools of one request. They know who is asking. */
function createServer (caller) {
  const server = new McpServer({ name: 'notes', version: '1.0.0' })
  server.registerTool('list_notes', { description: 'The notes of the person' }, async () => ({
    content: [{ type: 'text', text: `One note of ${caller.user.account}, for ${caller.client.clientId}` }]
  }))
  return server
}

app.all('/mcp', { onRequest: app.identity.protect({ resource, scopes: ['notes:read'] }) }, async (request, reply) => {
  const { fetch } = createMcpHandler(() => createServer(request.caller))
  const headers = Object.entries(request.headers).flatMap(([name, value]) => typeof value === 'string' ? [[name, value]] : [])
  const answer = await fetch(new Request(resource, { method: request.method, headers, ...(request.body != null && { body: JSON.stringify(request.body) }) }))
  return await reply.send(answer)
})

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`MCP server: ${resource}`)
