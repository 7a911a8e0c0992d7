import { createHash } from 'node:crypto'
import { constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createClientRecord } from '../lib/records/client.ts'
import type { GrantRecord, TokenRecord } from '../lib/records/token.ts'
import { createUserRecord } from '../lib/records/user.ts'
import { REGISTRY_ID } from '../lib/resources/registry.ts'
import { createSecretBox, parseSecretKeys } from '../lib/crypto/secrets.ts'
import { COLLECTIONS } from '../lib/store/collections.ts'
import { openStore } from '../lib/store/index.ts'
import type { Document } from '../lib/store/port.ts'
import { Table } from '../lib/store/sqlite/sql.ts'
import { hashToken } from '../lib/crypto/random-token.ts'
import { createPasswords } from '../lib/users/passwords.ts'
import { clientAt, grantAt, tokenAt, userAt } from './fixture.ts'

/** The contents of a store. Token i belongs to user i and client i, each modulo their number. */
export interface Fill {
  users: number
  clients: number
  tokens: number
  /** Each token belongs to a token session, as after a sign-in. Absent: to none, as minted on the command line. */
  grants?: true
}

/** Not a secret: it seals only the data of fixture.ts. */
export const SECRET_KEY = Buffer.alloc(32, 'bench').toString('base64')
export const PASSWORD = 'the password of every user'
/** Of the hash of every user's password. */
export const COST = 12

const CREATED = '2026-01-01T00:00:00.000Z'
const FAR = '2036-01-01T00:00:00.000Z'

/** Concurrent inserts; the store refuses more than 10,000. */
const STEP = 5_000

/** Later runs use a filled file again until its sources change. */
const CACHE = process.env.BENCH_CACHE ?? join(tmpdir(), 'fastify-identity-bench')
const SOURCES = ['fixture.ts', 'seed.ts', '../lib/records/user.ts', '../lib/records/client.ts', '../lib/records/token.ts', '../lib/store/collections.ts', '../lib/store/sqlite/schema.ts']

/** Returns the path of a file with these contents, and creates it if it does not exist. Only for reading: other runs use it too. */
export async function ensureFile (fill: Fill, log: (text: string) => void): Promise<string> {
  const version = createHash('sha256')
  for (const source of SOURCES) version.update(readFileSync(new URL(source, import.meta.url)))
  const file = join(CACHE, `users-${fill.users}-clients-${fill.clients}-tokens-${fill.tokens}${fill.grants ? '-grants' : ''}-${version.digest('hex').slice(0, 8)}.db`)
  if (existsSync(file)) return file
  mkdirSync(CACHE, { recursive: true })
  const unfinished = join(CACHE, `unfinished-${process.pid}.db`)
  log(`filling ${file}`)
  for (const end of ['', '-wal', '-shm']) rmSync(unfinished + end, { force: true })
  await fillFile(unfinished, fill)
  renameSync(unfinished, file)
  return file
}

/** A copy of such a file, for a server that writes. */
export async function copyDatabase (fill: Fill, directory: string, log: (text: string) => void): Promise<string> {
  const file = join(directory, `${createHash('sha256').update(`${process.hrtime.bigint()}`).digest('hex').slice(0, 8)}.db`)
  await copyFile(await ensureFile(fill, log), file, constants.COPYFILE_FICLONE)
  return file
}

/** The records by collection: their number, and a function that creates each. */
async function toRecords (fill: Fill): Promise<[name: string, length: number, at: (index: number) => Document][]> {
  const password = await hashPassword()
  const box = createSecretBox(...parseSecretKeys(SECRET_KEY))
  const toUser = (index: number) => {
    const { user_id: id, created_at, ...rest } = userAt(index)
    return createUserRecord(Date.parse(created_at), { id, password, ...rest })
  }
  const toClient = (index: number) => {
    const { clientId: id, createdAt, secret, image, grants, first_party, ...rest } = clientAt(index)
    return createClientRecord(Date.parse(createdAt), {
      id,
      ...(secret !== undefined && { secret: box.seal(secret, id) }),
      ...rest,
      userId: userAt(index % fill.users).user_id,
      ...(image !== undefined && { image }),
      ...(grants !== undefined && { grants: [...grants] }),
      ...(first_party !== undefined && { first_party }),
      revision: 0
    })
  }
  const toIssued = (index: number) => ({
    user_id: userAt(index % fill.users).user_id,
    client_id: clientAt(index % fill.clients).clientId,
    user_epoch: 0,
    client_epoch: 0,
    created_at: CREATED,
    expired_at: FAR
  })
  const toToken = (index: number): TokenRecord => ({
    id: hashToken(tokenAt(index)), ...toIssued(index), operator: 'unrestricted', registry_id: REGISTRY_ID, ...(fill.grants && { grant_id: grantAt(index) })
  })
  const toGrant = (index: number): GrantRecord => ({ id: grantAt(index), ...toIssued(index), last_used_at: CREATED, generation: 0, refreshed_at: [] })
  return [
    ['users', fill.users, toUser],
    ['clients', fill.clients, toClient],
    ['access_tokens', fill.tokens, toToken],
    ['grants', fill.grants ? fill.tokens : 0, toGrant]
  ]
}

/** Fills an empty store through the store port. */
export async function fillStore (url: string, fill: Fill): Promise<void> {
  const store = await openStore(url, { collections: COLLECTIONS, now: Date.now, timeout: 120_000 })
  for (const [name, length, at] of await toRecords(fill)) {
    const collection = store.collection(name)
    for (let start = 0; start < length; start += STEP) {
      await Promise.all(Array.from({ length: Math.min(STEP, length - start) }, (_, index) => collection.insert(at(start + index))))
    }
  }
  await store.close()
}

/**
 * Fills a new SQLite file directly, since millions of records would take an hour through the port. The store creates the tables,
 * and its own statements insert the rows without syncs. The indexes are created last.
 */
async function fillFile (file: string, fill: Fill): Promise<void> {
  await (await openStore(`sqlite:${file}`, { collections: COLLECTIONS, now: Date.now })).close()
  const database = new DatabaseSync(file)
  database.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000')
  const indexes = database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").all() as { name: string, sql: string }[]
  database.exec('BEGIN')
  for (const { name } of indexes) database.exec(`DROP INDEX "${name}"`)
  for (const [name, length, at] of await toRecords(fill)) {
    const table = new Table(COLLECTIONS.find((spec) => spec.name === name)!)
    const insert = length === 0 ? undefined : database.prepare(table.insert(at(0)).sql)
    for (let index = 0; index < length; index++) insert!.run(...table.insert(at(index)).values)
  }
  for (const { sql } of indexes) database.exec(sql)
  database.exec('COMMIT; PRAGMA journal_mode = WAL')
  database.close()
}

/** One real hash, shared by all users. */
async function hashPassword (): Promise<string> {
  const passwords = createPasswords({ cost: COST })
  try {
    return await passwords.hash(PASSWORD)
  } finally {
    await passwords.close()
  }
}
