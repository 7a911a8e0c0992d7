import t from 'tap'
import { COLLECTIONS } from '../../../lib/store/collections.ts'
import { deriveKey, deriveKeys } from '../../../lib/crypto/derive-key.ts'
import { createHashKeys } from '../../../lib/crypto/hash-keys.ts'
import { checkSecretKeys } from '../../../lib/crypto/seal.ts'
import { createSecretBox } from '../../../lib/crypto/secrets.ts'
import { openServices } from '../../../lib/identity.ts'
import { createSealing } from '../../../lib/maintenance/reseal.ts'
import type { Store } from '../../../lib/store/port.ts'
import { createAttempts } from '../../../lib/throttling/attempts.ts'
import { createKnownBrowsers } from '../../../lib/throttling/known-browsers.ts'
import { createUpstreamAttempts } from '../../../lib/upstreams/attempts.ts'
import { createFormerNames } from '../../../lib/users/former-names.ts'
import { createChallenges } from '../../../lib/ways/challenges.ts'
import { readOptions } from '../../../plugins/identity.ts'
import { importLines } from '../../helpers/import.ts'
import { forEachEngine } from '../../helpers/stores.ts'

// What depends on the secret key, at every step of its rotation: made by a process of before the step, and used by one of after it, or the
// other way round.

const now = Date.now
/** When passwords are tried: the pause after wrong ones lasts a second. */
const BEGIN = now()
const [K1, K2] = [1, 2].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer]
type Keys = [Buffer, ...Buffer[]]

/** A process with these keys. */
async function start (store: Store, ...given: Keys) {
  const box = createSecretBox(...given)
  await checkSecretKeys(store, box.keyIds, { database: 'sqlite::memory:', production: false })
  const hashKeys = createHashKeys({ store, box })
  await hashKeys.open()
  return {
    box,
    hashKeys,
    challenges: createChallenges({ store, now, keys: deriveKeys(box.keys, 'passkeys') }),
    browsers: createKnownBrowsers({ now, keys: deriveKeys(box.keys, 'known browsers') }),
    attempts: createAttempts({ store, now: () => BEGIN, key: hashKeys.get('attempts') }),
    upstreams: createUpstreamAttempts({ store, box, now }),
    names: createFormerNames({ store, now, box, roles: [] }),
    reseal: async () => await createSealing({ store, box, recorder: { insert: async () => '' } as never }).reseal()
  }
}
type Process = Awaited<ReturnType<typeof start>>

const fail = async (process: Process, name: string, times: number) => {
  for (let time = 0; time < times; time++) await process.attempts.run({ kind: 'user', name }, async () => null)
}

let count = 0
/** Makes something of each kind. @returns checks by another process */
async function make (one: Process) {
  const name = `name${++count}`
  const challenge = one.challenges.issue('begin', 'secret')
  const cookie = one.browsers.add(undefined, [name], { user_id: 'u', epoch: 0 })
  await fail(one, name, 20)
  const { state, verifier } = await one.upstreams.begin('secret', { upstream: 'up', redirectUri: 'https://id.example/', intent: { kind: 'sign_in', place: {} } })
  await one.names.remember({ account: name })
  return {
    name,
    checks: {
      'a challenge of a passkey': (other: Process) => other.challenges.isValid(challenge, 'begin', 'secret'),
      'a known browser': (other: Process) => other.browsers.find(cookie, name)?.user_id === 'u',
      'wrong passwords': async (other: Process) => await fail(other, name, 1).then(() => false, ({ reason }) => reason === 'paused'),
      'a sign-in at another provider': async (other: Process) => (await other.upstreams.require('up', state, 'secret')).verifier === verifier,
      'a name that is not free': async (other: Process) => await other.names.checkChosen(name).then(() => false, ({ code }) => code === 'ErrParam'),
      'the decoys, the names in events, and the seeds of imports': (other: Process) => (['decoys', 'events', 'imported seeds'] as const).every((purpose) => (
        one.hashKeys.get(purpose).equals(other.hashKeys.get(purpose))))
    }
  }
}

t.test('each step of a rotation', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
    async function meet (step: string, before: Process, after: Process) {
      for (const [which, one, other] of [['before to after', before, after], ['after to before', after, before], ['before to before', before, before]] as const) {
        for (const [what, check] of Object.entries((await make(one)).checks)) t.equal(await check(other), true, `${step}, ${which}: ${what}`)
      }
    }
    const first = await start(store, K1)
    await meet('the new key is announced', first, await start(store, K1, K2))
    const announced = await start(store, K1, K2)
    const sealing = await start(store, K2, K1)
    await meet('the new key seals', announced, sealing)
    const { checks } = await make(announced)
    const { checks: later } = await make(sealing)
    await sealing.reseal()
    await meet('all is sealed again', sealing, await start(store, K2, K1))
    const last = await start(store, K2)
    // The cookie of a browser and a page in the making may be of the key that is gone.
    for (const [what, check] of Object.entries(checks)) t.equal(await check(last), !/challenge|browser/.test(what), `the former key is gone: ${what}`)
    for (const [what, check] of Object.entries(later)) t.equal(await check(last), true, `the former key is gone: ${what}, made since`)
  })
})

t.test('a cookie with accounts of before the rotation keeps them when it is signed anew', async (t) => {
  const keys = (...given: Keys) => deriveKeys(createSecretBox(...given).keys, 'known browsers')
  const [before, after] = [createKnownBrowsers({ now, keys: keys(K1, K2) }), createKnownBrowsers({ now, keys: keys(K2, K1) })]
  const cookie = after.add(before.add(undefined, ['ann'], { user_id: 'a', epoch: 0 }), ['ben', 'ben@example.com'], { user_id: 'b', epoch: 0 })
  for (const browsers of [before, after]) {
    t.equal(browsers.find(cookie, 'ann')?.user_id, 'a')
    for (const name of ['ben', 'Ben@example.com']) t.equal(browsers.find(cookie, name)?.user_id, 'b')
  }
  const again = after.add(cookie, ['ann'], { user_id: 'a', epoch: 1 })
  t.equal(after.find(again, 'ann')?.epoch, 1, 'it has one entry')
  t.equal(createKnownBrowsers({ now, keys: keys(K2) }).find(again, 'ann')?.epoch, 1)
  t.equal(createKnownBrowsers({ now, keys: keys(Buffer.alloc(32, 3)) }).find(again, 'ann'), undefined, 'a key that is not configured signs nothing')
})

t.test('what an earlier release hashed is found, also when its rotation goes on', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
    // The process of that release has announced the second key, and then sealed with it.
    for (const keys of [[K1], [K1, K2], [K2, K1]] as Keys[]) {
      const { keyIds } = createSecretBox(...keys)
      await checkSecretKeys(store, keyIds, { database: 'sqlite::memory:', production: false })
    }
    const dry = createHashKeys({ store, box: createSecretBox(K2, K1) })
    await dry.open({ dryRun: true })
    t.equal(await store.collection('keys').count(), 0, 'a dry run makes no key')
    const [one, other] = await Promise.all([start(store, K2, K1), start(store, K1, K2)])
    const former = createSecretBox(K1).key
    for (const purpose of ['attempts', 'decoys', 'events', 'imported seeds'] as const) {
      for (const { hashKeys } of [one, other, { hashKeys: dry }]) t.ok(hashKeys.get(purpose).equals(deriveKey(former, purpose)), purpose)
    }
  })
})

t.test('a seed that was imported before a rotation is not imported again after it', async (t) => {
  await forEachEngine(t, { collections: COLLECTIONS }, async (t, store) => {
    const open = async (...keys: Keys) => await openServices({
      ...readOptions({ database: 'sqlite::memory:', bcryptCost: 4, passwordMin: 1 }), secretKey: keys.map((key) => key.toString('base64')).join(' '), store
    })
    const seed = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
    const bring = async (services: Awaited<ReturnType<typeof open>>, account: string) => (
      (await importLines(services, [{ account, email: account, totp: [{ secret: seed }] }])).verdicts)
    const first = await open(K1)
    t.match(await bring(first, 'ann@example.com'), [{ result: 'created' }])
    await (await open(K1, K2)).close()
    const next = await open(K2, K1)
    t.match(await bring(next, 'ben@example.com'), [{ result: 'refused' }])
    await next.sealing.reseal()
    await first.close()
    await next.close()
    const last = await open(K2)
    t.match(await bring(last, 'cas@example.com'), [{ result: 'refused' }])
    await last.close()
  })
})
