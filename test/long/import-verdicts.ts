import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { openPlainServices } from '../helpers/plain-services.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { ImportLine, ImportOptions, ImportVerdict } from '../../schemas/import.ts'
import { BCRYPT, importLines } from '../helpers/import.ts'
import { MONGODB_URL } from '../helpers/mongodb.ts'
import { type Choose, createRandom } from '../helpers/scheduler.ts'

/** Lines of the file. */
const LINES = Number(process.env['VERDICT_LINES'] ?? 10_000)

/** One of so many lines is odd. */
const ODD = 5

type Line = Partial<ImportLine> & Record<string, unknown>

const base32 = (choose: Choose): string => Array.from({ length: 32 }, () => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[choose(32)]).join('')

/** Changes of a line so that it is refused, or clashes with an earlier one. */
const CHANGES: readonly ((line: Line, earlier: Line, choose: Choose) => Line)[] = [
  (line, { account }) => ({ ...line, account: String(account).toUpperCase() }),
  (line, { account }) => ({ ...line, id: undefined, external: undefined, account }),
  (line, { id }) => ({ ...line, id }),
  (line, { external }) => ({ ...line, id: undefined, external }),
  (line, { external }) => ({ ...line, external: { other: external?.['old'] ?? 'none' } }),
  (line, { account }) => ({ ...line, email: String(account), email_verified: true }),
  (line, { identities }) => ({ ...line, identities }),
  (line, { totp }) => ({ ...line, totp }),
  (_line, earlier) => ({ ...earlier, name: 'Somebody else' }),
  (_line, earlier) => earlier,
  (line) => ({ ...line, account: 'not an account' }),
  (line) => ({ ...line, account: 'local' }),
  (line) => ({ ...line, id: 'list' }),
  (line) => ({ ...line, extra: 1 }),
  (line) => ({ ...line, roles: { admin: true } }),
  (line) => ({ ...line, password: { hash: 'hunter2' } }),
  (line) => ({ ...line, totp: [{ secret: 'JBSWY3DP' }] }),
  (line) => ({ ...line, name: '\ud800' }),
  (line) => ({ ...line, created_at: '2999-01-01T00:00:00Z' })
]

function makeLines (): Line[] {
  const choose = createRandom(2026)
  const lines: Line[] = []
  for (let number = 0; number < LINES; number++) {
    const line: Line = {
      ...(choose(3) > 0 && { id: `old|${number}` }),
      external: { old: String(number) },
      account: choose(2) === 0 ? `person${number}@example.com` : `person${number}`,
      email: `address${number}@example.com`,
      email_verified: choose(2) === 0,
      name: `Person ${number}`,
      info: { number },
      roles: choose(10) === 0 ? { editor: true } : {},
      created_at: '2019-04-05T06:07:08.000Z',
      ...(choose(2) === 0 && { password: { hash: BCRYPT } }),
      ...(choose(10) === 0 && { totp: [{ secret: base32(choose) }] }),
      ...(choose(10) === 0 && { identities: [{ issuer: 'https://login.example', subject: String(number) }] })
    }
    const isOdd = number > 0 && choose(ODD) === 0
    lines.push(isOdd ? CHANGES[choose(CHANGES.length)]!(line, lines[choose(number)]!, choose) : line)
  }
  // As a file has them: without the fields that are undefined.
  return JSON.parse(JSON.stringify(lines)) as Line[]
}

/** Ids that the service generates differ from store to store. */
const toComparable = ({ user_id, ...verdict }: ImportVerdict) => ({ ...verdict, ...(user_id !== undefined && { user_id: user_id.startsWith('old|') ? user_id : 'generated' }) })

interface Outcome { runs: Record<string, ReturnType<typeof toComparable>[]>, people: object[], rate: number }

/** The runs of one store, one after the other. */
async function importAll (database: string, lines: readonly Line[]): Promise<Outcome> {
  const services = await openPlainServices({ database, storeTimeout: 60_000 })
  try {
    await services.users.create({ data: { account: 'local', password: 'a long password' } })
    const changed = lines.map((line, number) => number % 3 === 0 ? { ...line, name: 'Another name', password: { hash: BCRYPT } } : line)
    const runs: Outcome['runs'] = {}
    const importAs = async (name: string, from: readonly Line[], options: Partial<ImportOptions> = {}) => {
      const { verdicts, report } = await importLines(services, from, { trustEmails: true, run: name, ...options })
      runs[name] = verdicts.map(toComparable)
      return report
    }
    await importAs('dry', lines, { dryRun: true })
    const begin = performance.now()
    await importAs('first', lines)
    const rate = lines.length / (performance.now() - begin) * 1_000
    const { created, updated } = await importAs('again', lines)
    if (created + updated > 0) throw new Error(`${created} were created and ${updated} updated by the same lines`)
    await importAs('fail', changed, { onConflict: 'fail' })
    await importAs('update', changed, { onConflict: 'update' })
    await importAs('other', lines, { source: 'other' })
    const people: object[] = []
    for await (const batch of services.store.collection<UserRecord>('users').stream()) {
      for (const { account, name, email, external, roles, ways, password, info } of batch) {
        people.push({ account, name, email, external, roles, info, ways: Object.values(ways ?? {}).map(({ kind }) => kind), password: password === BCRYPT })
      }
    }
    people.sort((one, other) => JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)
    return { runs, people, rate }
  } finally {
    await services.close()
  }
}

/** A first difference, in words. */
function findDifference (one: Outcome, other: Outcome): string | undefined {
  for (const [name, verdicts] of Object.entries(one.runs)) {
    for (const [index, verdict] of verdicts.entries()) {
      const found = other.runs[name]![index]
      if (!isDeepStrictEqual(verdict, found)) return `${name}: ${JSON.stringify(verdict)} and ${JSON.stringify(found)}`
    }
  }
  const at = one.people.findIndex((person, index) => !isDeepStrictEqual(person, other.people[index]))
  return at === -1 && one.people.length === other.people.length ? undefined : `${JSON.stringify(one.people[at])} and ${JSON.stringify(other.people[at])}`
}

/** The long test: a file with clashes and refused lines gets the same verdicts from SQLite and from MongoDB, in every kind of run. */
export async function run (): Promise<string> {
  if (MONGODB_URL === undefined) return 'import verdicts: skipped without MONGODB_URL'
  const directory = mkdtempSync(join(tmpdir(), 'verdicts-'))
  const url = new URL(MONGODB_URL)
  url.pathname = `/identity_test_${randomUUID().replaceAll('-', '').slice(0, 16)}`
  try {
    const lines = makeLines()
    const sqlite = await importAll(`sqlite:${join(directory, 'verdicts.db')}`, lines)
    const mongo = await importAll(url.href, lines)
    const difference = findDifference(sqlite, mongo)
    if (difference !== undefined) throw new Error(`the verdicts differ: ${difference}`)
    const counts = Object.entries(sqlite.runs).map(([name, verdicts]) => {
      const results = Object.groupBy(verdicts, ({ result }) => result)
      return `${name}: ${Object.entries(results).map(([result, all]) => `${result} ${all.length}`).join(', ')}`
    })
    return `import verdicts: ${LINES} lines, the same on both stores (${Math.round(sqlite.rate)} lines a second on SQLite, ${Math.round(mongo.rate)} on MongoDB, ` +
      `load of the machine ${loadavg()[0]!.toFixed(1)}):\n  ${counts.join('\n  ')}`
  } finally {
    rmSync(directory, { recursive: true, force: true })
    const { MongoClient } = await import('mongodb')
    const client = new MongoClient(url.href)
    await client.db().dropDatabase().finally(() => client.close())
  }
}

if (import.meta.main) console.log(await run())
