import { DatabaseSync } from 'node:sqlite'
import Fastify from 'fastify'
import type { RepeatOptions } from '../types.ts'
import { repeat } from './repeat.ts'
import { readOptions, serve } from './serve.ts'

// The straightforward way by hand: a transaction and a sync for each user. Without a file, nothing is stored.

const { file } = readOptions<{ file?: string }>()

function open (path: string): (...row: string[]) => void {
  const database = new DatabaseSync(path)
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE users (id TEXT PRIMARY KEY, account TEXT UNIQUE, doc TEXT)`)
  const insert = database.prepare('INSERT INTO users VALUES (?, ?, ?)')
  return (...row) => { insert.run(...row) }
}

const store = file === undefined ? () => {} : open(file)
let count = 0

function create (account: string, name: string): string {
  const id = String(count++).padStart(34, '0')
  const time = new Date().toISOString()
  store(id, account, JSON.stringify({ id, account, created_at: time, modified_at: time, verified_at: time, roles: {}, name, info: {} }))
  return id
}

const app = Fastify()
app.post<{ Body: { data: { account: string, name: string } } }>('/api/v1/user', (request, reply) => {
  const { account, name } = request.body.data
  reply.send({ data: { user_id: create(account, name) } })
})

await serve(app, { calls: { repeat: (options: RepeatOptions) => repeat(async (account) => create(account, 'New user'), options) } })
