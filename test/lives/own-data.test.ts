import t from 'tap'
import { ENDED_BY_EPOCH, PURPOSES, type Purpose } from '../../lib/tickets/tickets.ts'
import { createOwnData } from '../../lib/export/own-data.ts'
import type { TokenRecord } from '../../lib/records/token.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import { createCounter } from '../../lib/throttling/counter.ts'
import { CLIENT_CREDENTIALS, SERVICE } from '../../lib/tokens/validity.ts'
import { HOUR, MINUTE, succeeds, tryLives } from '../helpers/lives.ts'
import { openRules } from '../helpers/services.ts'
import { createBase } from '../helpers/base.ts'

// A person's own data names the links and tokens that can still be used, and no others.

const { store, now, advance, users, clients, tokens, tickets } = await openRules(t)
async function * none (): AsyncGenerator<never[]> {}
const ownData = createOwnData({
  ...createBase({ store, now }),
  ways: { list: async () => [] },
  ownSessions: { readBrowsers: none, readTokenSessions: none },
  uses: { read: async () => ({}) },
  counter: createCounter(now)
})
const { user_id } = await users.create({ data: { account: 'ann', password: 'x' } })
const { clientId: client_id } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'app', userId: user_id } }, { user_id, isAdmin: true })
const records = store.collection<UserRecord>('users')

interface Data { links: { purpose: Purpose }[], tokens: object[] }

async function readData (): Promise<Data> {
  let text = ''
  for await (const piece of await ownData.read(user_id, { isLimited: false })) text += piece
  return JSON.parse(text) as Data
}

const readLinks = async (): Promise<Purpose[]> => (await readData()).links.map(({ purpose }) => purpose)

/** A link of each purpose, of the present epoch of the user. */
async function issueAll (): Promise<void> {
  const { epoch } = (await records.get(user_id))!
  for (const purpose of Object.keys(PURPOSES) as Purpose[]) await tickets.issue({ purpose, mailed: true, user_id, user_epoch: epoch })
}

await tryLives(t, { clock: { now, advance }, store }, [
  ...(Object.keys(PURPOSES) as Purpose[]).map((purpose) => ({
    name: `a link: ${purpose}`,
    life: PURPOSES[purpose].life,
    stored: 'tickets',
    async make () {
      await tickets.issue({ purpose, mailed: true, user_id, user_epoch: 0 })
      return async () => (await readLinks()).includes(purpose)
    }
  })),
  {
    name: 'a token without a session',
    life: 10 * MINUTE,
    stored: 'access_tokens',
    async make () {
      await tokens.mint({ user_id, client_id, ttl: 600 })
      return async () => (await readData()).tokens.length === 1
    }
  },
  {
    name: 'the data are not exported again',
    life: HOUR,
    async make () {
      advance(HOUR)
      await ownData.read(user_id)
      return async () => !await succeeds(ownData.read(user_id), 'ErrLimit')
    }
  }
])

t.test('of the tokens, those are there that are live, that are of the person, and that belong to no session', async (t) => {
  const accessTokens = store.collection<TokenRecord>('access_tokens')
  await accessTokens.deleteMany({ before: { id: '~' } })
  const { epoch } = (await records.get(user_id))!
  const expired_at = new Date(now() + HOUR).toISOString()
  const token = { user_id, client_id, user_epoch: epoch, client_epoch: 0, created_at: new Date(now()).toISOString(), expired_at }
  const others: Record<string, Partial<TokenRecord>> = {
    'of a client that acts for itself': { kind: CLIENT_CREDENTIALS },
    'of a session': { grant_id: 'grant' },
    'of an older epoch': { user_epoch: epoch - 1 },
    'that has expired': { expired_at: token.created_at },
    'of somebody else': { user_id: 'bob' },
    'of a client that has ended its tokens': { client_epoch: -1 },
    'a service token that has expired': { kind: SERVICE, expired_at: token.created_at },
    'a service token of a client that is gone': { kind: SERVICE, client_id: 'gone' }
  }
  for (const [id, fields] of Object.entries(others)) await accessTokens.insert({ ...token, ...fields, id })
  t.strictSame((await readData()).tokens, [])
  await accessTokens.insert({ ...token, id: 'own' })
  t.match((await readData()).tokens, [{ client_id, expires_at: expired_at }])
  const { user_epoch: _epoch, ...service } = { ...token, kind: SERVICE, name: 'SCIM' }
  await accessTokens.insert({ ...service, id: 'service' })
  t.match((await readData()).tokens, [{ client_id, service: undefined }, { client_id, service: true, name: 'SCIM' }])
})

t.test('of the links of an older epoch, those are there that outlive it', async (t) => {
  await store.collection('tickets').deleteMany({ before: { id: '~' } })
  await issueAll()
  t.strictSame(await readLinks(), Object.keys(PURPOSES))
  await records.update(user_id, { increment: { epoch: 1 } })
  t.strictSame(ENDED_BY_EPOCH, ['reset', 'invite', 'verify', 'change'])
  t.strictSame(await readLinks(), ['sign-up', 'undo', 'enrol'])
  await issueAll()
  const links = await readLinks()
  for (const purpose of ENDED_BY_EPOCH) t.equal(links.filter((one) => one === purpose).length, 1, `the new one: ${purpose}`)
})
