import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import Fastify from 'fastify'
import { CLIENTS, TOKENS, clientAt, tokenAt, userAt } from '../fixture.ts'
import { tokenInfoLoad } from '../loads.ts'
import { tokenInfoSchema } from './answers.ts'
import { readOptions, serve } from './serve.ts'

// The straightforward way by hand: reads the token, its user and its client by three prepared statements of node:sqlite.

const { file } = readOptions<{ file: string }>()
const database = new DatabaseSync(file)
database.exec(`PRAGMA journal_mode = WAL; BEGIN;
  CREATE TABLE tokens (id TEXT PRIMARY KEY, user_id TEXT, client_id TEXT, expired_at TEXT);
  CREATE TABLE users (id TEXT PRIMARY KEY, account TEXT, name TEXT, roles TEXT, disabled_at TEXT);
  CREATE TABLE clients (id TEXT PRIMARY KEY, scopes TEXT)`)

const hash = (token: string) => createHash('sha256').update(token).digest('base64url')

const addToken = database.prepare('INSERT INTO tokens VALUES (?, ?, ?, ?)')
const addUser = database.prepare('INSERT INTO users VALUES (?, ?, ?, ?, NULL)')
const addClient = database.prepare('INSERT INTO clients VALUES (?, ?)')
for (let index = 0; index < TOKENS; index++) {
  const { user_id, account, name, roles } = userAt(index)
  addUser.run(user_id, account, name, JSON.stringify(roles))
  addToken.run(hash(tokenAt(index)), user_id, clientAt(index % CLIENTS).clientId, '2036-01-01T00:00:00.000Z')
}
for (let index = 0; index < CLIENTS; index++) {
  const { clientId, scopes } = clientAt(index)
  addClient.run(clientId, JSON.stringify(scopes))
}
database.exec('COMMIT')

const findToken = database.prepare('SELECT * FROM tokens WHERE id = ?')
const findUser = database.prepare('SELECT * FROM users WHERE id = ?')
const findClient = database.prepare('SELECT * FROM clients WHERE id = ?')

const unknown = () => Object.assign(new Error('unknown token'), { statusCode: 401 })

const app = Fastify()
app.get('/api/v1/auth/tokeninfo', { schema: tokenInfoSchema }, (request, reply) => {
  const token = findToken.get(hash(request.headers.authorization!.slice(7))) as Record<string, string> | undefined
  if (token === undefined || token.expired_at! <= new Date().toISOString()) throw unknown()
  const user = findUser.get(token.user_id!) as Record<string, string | null>
  const client = findClient.get(token.client_id!) as Record<string, string>
  if (user.disabled_at !== null) throw unknown()
  reply.header('cache-control', 'no-store').send({
    data: {
      user_id: user.id, account: user.account, name: user.name, roles: JSON.parse(user.roles!), client_id: client.id, scopes: JSON.parse(client.scopes!)
    }
  })
})

await serve(app, { load: tokenInfoLoad() })
