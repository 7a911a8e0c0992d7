import { hash } from 'node:crypto'
import { mock } from 'node:test'
import { SignJWT } from 'jose'
import t from 'tap'
import { createAssertions } from '../../lib/oidc/assertions.ts'
import { createTimes } from '../../lib/oidc/model-adapter.ts'
import type { ClientRecord } from '../../lib/records/client.ts'
import { assert, createTestKey } from '../helpers/assertions.ts'
import { build } from '../helpers/build.ts'
import { DAY, HOUR, type Life, MINUTE, SECOND, tryLives } from '../helpers/lives.ts'

// What clients sign carries times of its own, which are compared with the clock of the machine. So the test moves both clocks.

const ISSUER = 'https://id.example'
const BEGIN = Date.parse('2126-11-23T00:00:00.000Z')
mock.timers.enable({ apis: ['Date'], now: BEGIN })
t.teardown(() => mock.timers.reset())

const kit = await build(t, { rateLimit: false, oidc: { issuer: ISSUER } })
const { store } = kit.app.identity
const clock = {
  now: kit.clock.now,
  advance (milliseconds: number) {
    kit.clock.advance(milliseconds)
    mock.timers.setTime(kit.clock.now())
  }
}
const seconds = () => clock.now() / SECOND

const KEY = createTestKey('ES256')
const CLIENT = { id: 'app', keys: [{ jwk: KEY.jwk }] } as unknown as ClientRecord
const { verify } = createAssertions({ store, times: createTimes(clock.now) })

/** An assertion works once. A second use is refused as long as its twin, which has the same times, would still work. */
const toAssertion = (name: string, life: number, toClaims: () => { iat: number, exp: number }, client: Partial<ClientRecord> = {}): Life => ({
  name,
  life,
  stored: 'proofs',
  async make () {
    const claims = toClaims()
    const [used, twin] = [await assert(CLIENT.id, ISSUER, KEY, claims), await assert(CLIENT.id, ISSUER, KEY, claims)]
    const use = async (text: string) => await verify({ ...CLIENT, ...client }, text, ISSUER) !== undefined
    t.equal(await use(used), true)
    return async () => {
      t.equal(await use(used), false, `${name}: a second use`)
      return await use(twin)
    }
  }
})

await tryLives(t, { clock, store }, [
  toAssertion('an assertion of a client, with 15 s more for clocks that differ', 75 * SECOND, () => ({ iat: seconds(), exp: seconds() + 60 })),
  toAssertion('an assertion with a late end, for five minutes', 5 * MINUTE + 15 * SECOND, () => ({ iat: seconds(), exp: seconds() + 3600 })),
  toAssertion('an assertion of a clock that is 60 s ahead', 6 * MINUTE + 15 * SECOND, () => ({ iat: seconds() + 60, exp: seconds() + 3600 })),
  {
    name: 'the keys of a document that was fetched',
    life: 7 * DAY,
    make () {
      const keys_at = new Date(clock.now()).toISOString()
      return async () => await verify({ ...CLIENT, document: { keys_at } as NonNullable<ClientRecord['document']> }, await assert(CLIENT.id, ISSUER, KEY), ISSUER) !== undefined
    }
  }
])

t.test('DPoP proofs', async (t) => {
  const { clients, users } = kit.app.identity
  const admin = { ...await users.create({ data: { account: 'root', password: 'x' } }), isAdmin: true }
  const { clientId } = await clients.create({ data: { redirectUris: [], scopes: [], name: 'machine', grants: ['client'] }, credentials: true }, admin)
  const { clientSecret = '' } = await clients.require(clientId, admin)
  const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
  const url = '/api/v1/auth/token'

  /** A DPoP proof for the token endpoint (RFC 9449, 4.2). */
  const sign = async (claims: object): Promise<string> => await new SignJWT({
    htm: 'POST', htu: `${ISSUER}${url}`, jti: hash('sha256', String(Math.random())), ...claims
  }).setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: KEY.jwk }).sign(KEY.privateKey)

  const send = async (dpop: string) => await kit.inject({
    method: 'POST', url, headers: { authorization: basic, dpop, 'content-type': 'application/x-www-form-urlencoded' }, payload: 'grant_type=client_credentials'
  })

  /** The type of the token, or the error. */
  async function use (proof: string): Promise<string | undefined> {
    const { error, token_type } = (await send(proof)).json<{ error?: string, token_type?: string }>()
    return token_type ?? error
  }

  const toProof = (name: string, life: number, toClaims: () => object | Promise<object>): Life => ({
    name,
    life,
    async make () {
      const claims = await toClaims()
      const [used, twin] = [await sign(claims), await sign(claims)]
      t.equal(await use(used), 'DPoP')
      return async () => {
        const outcome = await use(twin)
        t.equal(await use(used), outcome === 'DPoP' ? 'invalid_grant' : 'use_dpop_nonce', `${name}: a second use`)
        return outcome === 'DPoP'
      }
    }
  })

  await tryLives(t, { clock, store }, [
    toProof('a DPoP proof', 5 * MINUTE, () => ({ iat: seconds() })),
    toProof('a DPoP proof of a clock that is behind', MINUTE, () => ({ iat: seconds() - 240 })),
    toProof('a DPoP proof of a clock that is ahead', 9 * MINUTE, () => ({ iat: seconds() + 240 })),
    toProof('a nonce of a DPoP proof, until two minutes after its own', 4 * MINUTE, async () => {
      clock.advance(MINUTE - clock.now() % MINUTE)
      return { iat: seconds() - HOUR / SECOND, nonce: (await send(await sign({ iat: 1 }))).headers['dpop-nonce'] }
    })
  ])
})
