import { DatabaseSync } from 'node:sqlite'
import Fastify from 'fastify'
import { readOptions, serve } from './serve.ts'

// What one would write by hand: a user a transaction, each with a sync of the disk to itself.

const { file } = readOptions<{ file: string }>()
const database = new DatabaseSync(file)
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE users (id TEXT PRIMARY KEY, account TEXT UNIQUE, doc TEXT)`)
const insert = database.prepare('INSERT INTO users VALUES (?, ?, ?)')

const app = Fastify()
let count = 0
app.post<{ Body: { data: { account: string, name: string } } }>('/api/v1/user', (request, reply) => {
  const { account, name } = request.body.data
  const id = String(count++).padStart(34, '0')
  const time = new Date().toISOString()
  insert.run(id, account, JSON.stringify({ id, account, created_at: time, modified_at: time, verified_at: time, roles: {}, name, info: {} }))
  reply.send({ data: { user_id: id } })
})

await serve(app)
