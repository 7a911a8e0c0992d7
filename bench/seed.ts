import { createHash } from 'node:crypto'
import { constants, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openServices } from '../lib/identity.ts'
import { type TokenRecord, type UserRecord, createClientRecord, createUserRecord } from '../lib/records.ts'
import { createSecretBox, parseSecretKey } from '../lib/crypto/secrets.ts'
import { COLLECTIONS } from '../lib/store/collections.ts'
import { openStore } from '../lib/store/index.ts'
import type { Document } from '../lib/store/port.ts'
import { Table } from '../lib/store/sqlite/sql.ts'
import { hashToken } from '../lib/tokens/tokens.ts'
import { clientAt, tokenAt, userAt } from './fixture.ts'

/** What a store is filled with. Token i is user i's and client i's, each modulo their number. */
export interface Fill {
  users: number
  clients: number
  tokens: number
}

/** Not a secret: it seals what everyone can read in fixture.ts. */
export const SECRET_KEY = Buffer.alloc(32, 'bench').toString('base64')
export const PASSWORD = 'the password of every user'

const FAR = '2036-01-01T00:00:00.000Z'

/** Records on their way to the store at once; it refuses more than 10,000. */
const STEP = 5_000

/** Files of earlier runs are used again while what they are made of stays as it is. */
const CACHE = process.env.BENCH_CACHE ?? join(tmpdir(), 'fastify-identity-bench')
const SOURCES = ['fixture.ts', 'seed.ts', '../lib/records.ts', '../lib/store/collections.ts', '../lib/store/sqlite/schema.ts']

/** The path of a database file with this in it, made when there is none. It is for reading: others use it again. */
export async function ensureFile (fill: Fill, log: (text: string) => void): Promise<string> {
  const version = createHash('sha256')
  for (const source of SOURCES) version.update(readFileSync(new URL(source, import.meta.url)))
  const file = join(CACHE, `users-${fill.users}-clients-${fill.clients}-tokens-${fill.tokens}-${version.digest('hex').slice(0, 8)}.db`)
  if (existsSync(file)) return file
  mkdirSync(CACHE, { recursive: true })
  const unfinished = join(CACHE, `unfinished-${process.pid}.db`)
  log(`filling ${file}`)
  for (const end of ['', '-wal', '-shm']) rmSync(unfinished + end, { force: true })
  await fillFile(unfinished, fill)
  renameSync(unfinished, file)
  return file
}

/** A copy, for a server that writes. */
export async function copyDatabase (fill: Fill, directory: string, log: (text: string) => void): Promise<string> {
  const file = join(directory, `${createHash('sha256').update(`${process.hrtime.bigint()}`).digest('hex').slice(0, 8)}.db`)
  await copyFile(await ensureFile(fill, log), file, constants.COPYFILE_FICLONE)
  return file
}

/** What a store is filled with, by collection: how many, and each of them. */
async function toRecords (fill: Fill): Promise<[name: string, length: number, at: (index: number) => Document][]> {
  const password = await hashPassword()
  const box = createSecretBox(parseSecretKey(SECRET_KEY))
  const toUser = (index: number) => {
    const { user_id: id, created_at, ...rest } = userAt(index)
    return createUserRecord(Date.parse(created_at), { id, password, ...rest })
  }
  const toClient = (index: number) => {
    const { clientId: id, createdAt, secret, image, ...rest } = clientAt(index)
    return createClientRecord(Date.parse(createdAt), {
      id,
      ...(secret !== undefined && { secret: box.seal(secret, id) }),
      ...rest,
      userId: userAt(index % fill.users).user_id,
      ...(image !== undefined && { image })
    })
  }
  const toToken = (index: number): TokenRecord => ({
    id: hashToken(tokenAt(index)),
    user_id: userAt(index % fill.users).user_id,
    client_id: clientAt(index % fill.clients).clientId,
    user_epoch: 0,
    client_epoch: 0,
    created_at: '2026-01-01T00:00:00.000Z',
    expired_at: FAR
  })
  return [['users', fill.users, toUser], ['clients', fill.clients, toClient], ['access_tokens', fill.tokens, toToken]]
}

/** Fills an empty store through its port. */
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
 * Fills a new SQLite file past the port, since millions would take the port an hour: the store makes the tables and its
 * statements the rows, but nothing is synced, and the indexes are made at the end.
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

/** One real hash, which all users share. */
async function hashPassword (): Promise<string> {
  const services = await openServices({
    database: 'sqlite::memory:', storeTimeout: 10_000, staleness: 0, secretKey: SECRET_KEY, production: false, bcryptCost: 12, hashQueue: 1, roles: { admin: 'admin', manager: 'manager', service: 'service' }
  })
  const { user_id } = await services.users.create({ data: { account: 'one', password: PASSWORD } })
  const record = await services.store.collection<UserRecord>('users').get(user_id)
  await services.close()
  return record!.password
}
