import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../lib/store/index.ts'
import { createReads } from '../lib/lists/reads.ts'
import { type UserRecord, createUserRecord } from '../lib/records/user.ts'
import type { Filter, Keyset } from '../lib/store/port.ts'
import { toUserWords } from '../lib/words.ts'

// What the pages of a search take: `node bench/search.ts [USERS] [DATABASE]`. By default a million users in a new SQLite file, which takes some
// minutes to fill; with a MongoDB URL in a database that it drops in the end.

const USERS = Number(process.argv[2] ?? 1_000_000)
const REPEATS = 5
/** The page that is read by its cursor, and the records of a page. */
const [PAGE, LIMIT] = [10_000, 100]
/** The accepted times, in milliseconds. */
const GOALS = { first: 100, deep: 50 }

const FIRST = ['Anna', 'Jan', 'Zofia', 'Иван', 'José', 'Łucja', 'Maria', 'Peter', 'Sam', 'Yuki', 'Ben', 'Chloé', 'Dora', 'Emil', 'Fatima', 'Georg', 'Hana', 'Igor', 'Katja', 'Lena']
const LAST = ['Kowal', 'Nowak', 'Schmidt', 'Smith', 'García', 'Петров', 'Müller', 'Rossi', 'Tanaka', 'Weber', 'Adams', 'Brown', 'Costa', 'Duval', 'Eriksen', 'Fischer', 'Gruber', 'Horvat']

const pick = (list: readonly string[], seed: number): string => list[seed % list.length] ?? ''

function createUser (number: number): UserRecord {
  // The same people at each run, in an order that has nothing to do with their names.
  const seed = Math.imul(number, 2_654_435_761) >>> 0
  const [first, last] = [pick(FIRST, seed), `${pick(LAST, seed >>> 8)}${pick(['', 'ski', 'er', 'son', 'in'], seed >>> 16)}`]
  const account = `${toUserWords({ account: `${first}.${last}` }).join('.')}${number}@example.com`
  const name = number % 100_000 === 7 ? `${first} Quixote` : `${first} ${last}`
  return { ...createUserRecord(Date.now(), { account, name, roles: {}, info: {} }), words: toUserWords({ account, name }) }
}

const directory = mkdtempSync(join(tmpdir(), 'identity-search-'))
const url = process.argv[3] ?? `sqlite:${join(directory, 'search.db')}`
const store = await openStore(url, { timeout: 60_000 })
const users = store.collection<UserRecord>('users')
const reads = createReads(store)

const filling = performance.now()
for (let start = 0; start < USERS; start += 500) {
  await users.insertMany(Array.from({ length: Math.min(500, USERS - start) }, (_, index) => createUser(start + index)))
  if (start % 100_000 === 0) console.error(`${start} users`)
}
console.error(`filled in ${((performance.now() - filling) / 1_000).toFixed(0)} s`)

const SORT = [{ key: 'account', direction: 'asc' }] as const

async function readPage (filter: Filter, after?: Keyset): Promise<{ time: number, found: number, more: boolean }> {
  const start = performance.now()
  const page = await reads.page(users, { filter, sort: [...SORT], limit: LIMIT, ...(after && { after }) }, ({ id }) => id)
  const found = (await Array.fromAsync(page.batches)).flat().length
  return { time: performance.now() - start, found, more: page.after !== undefined }
}

const SEARCHES: [words: string[], what: string][] = [
  [['a'], 'one letter'], [['ex'], 'a word of everybody'], [['kow'], 'a common word'], [['anna', 'kow'], 'two common words'], [['quix'], 'a rare word'],
  [['quix', 'a'], 'a rare and a common word'], [['nobodyhasthis'], 'a word of nobody'], [['anna', 'jan'], 'two common words of nobody'], [['anna7'], 'an account']
]

async function findPlace (): Promise<Keyset | undefined> {
  for await (const [user] of users.page({ sort: [...SORT], offset: Math.min(PAGE * LIMIT, Math.floor(USERS * 0.9)), limit: 1 })) {
    if (user !== undefined) return { values: [user.account], id: user.id }
  }
  return undefined
}

const deep = await findPlace()
const show = (times: number[]): string => `${times[0]?.toFixed(1)} first, ${times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]?.toFixed(1)} median, ${Math.max(...times).toFixed(1)} most`
console.log(`${USERS} users on ${store.engine}, milliseconds of ${REPEATS} pages of ${LIMIT}; goals: ${GOALS.first} for a first page, ${GOALS.deep} for page ${PAGE}`)
for (const [words, what] of SEARCHES) {
  for (const [place, after] of [['first page', undefined], [`page ${PAGE}`, deep]] as const) {
    const pages = []
    for (let repeat = 0; repeat < REPEATS; repeat++) pages.push(await readPage({ begins: { words } }, after))
    const { found, more } = pages[0]!
    console.log(`${what} (${words.join(' ')}), ${place}: ${show(pages.map(({ time }) => time))}; ${found} found${more ? ', more follow' : ''}`)
  }
}
await store.close()
if (process.argv[3] !== undefined && !url.startsWith('sqlite:')) {
  const { MongoClient } = await import('mongodb')
  const client = new MongoClient(url)
  await client.db().dropDatabase()
  await client.close()
}
rmSync(directory, { recursive: true })
