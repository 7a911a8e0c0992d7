import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { admin } from 'better-auth/plugins'
import { TOKENS, tokenAt, userAt } from '../fixture.ts'
import { toRaw } from '../http.ts'
import { readOptions, serve } from './serve.ts'

// better-auth on node:sqlite: the session of a cookie, and the list of users of its admin plugin.

const { file, list = false } = readOptions<{ file: string, list?: boolean }>()
const secret = 'a secret of more than thirty-two characters'

const database = new DatabaseSync(file)
database.exec('PRAGMA journal_mode = WAL')
const config = {
  database,
  secret,
  baseURL: 'http://127.0.0.1',
  plugins: [admin()],
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { disabled: true }
}
await (await getMigrations(config)).runMigrations()
const auth = betterAuth(config)

const now = new Date()
const far = new Date(Date.now() + 7 * 86_400_000).toISOString()
const addUser = database.prepare('INSERT INTO user (id, name, email, emailVerified, createdAt, updatedAt, role) VALUES (?, ?, ?, 1, ?, ?, ?)')
const addSession = database.prepare('INSERT INTO session (id, token, userId, expiresAt, createdAt, updatedAt) VALUES (?, ?, ?, ?, ?, ?)')
database.exec('BEGIN')
for (let index = 0; index < TOKENS; index++) {
  const { user_id, account, name } = userAt(index)
  const time = now.toISOString()
  addUser.run(user_id, name, account, time, time, index === 0 ? 'admin' : 'user')
  addSession.run(`session${index}`, tokenAt(index), user_id, far, time, time)
}
database.exec('COMMIT')

const cookieAt = (index: number) => {
  const token = tokenAt(index)
  const signature = createHmac('sha256', secret).update(token).digest('base64')
  return { cookie: `better-auth.session_token=${encodeURIComponent(`${token}.${signature}`)}` }
}

const load = list
  ? {
      requests: Array.from({ length: TOKENS / 100 }, (_, page) => toRaw({
        path: `/api/auth/admin/list-users?limit=100&offset=${page * 100}&sortBy=email&sortDirection=asc`, headers: cookieAt(0)
      })),
      proofs: Array.from({ length: TOKENS / 100 }, (_, page) => userAt(page * 100).account)
    }
  : {
      requests: Array.from({ length: TOKENS }, (_, index) => toRaw({ path: '/api/auth/get-session', headers: cookieAt(index) })),
      proofs: Array.from({ length: TOKENS }, (_, index) => userAt(index).account)
    }

await serve(createServer(toNodeHandler(auth)), { load })
