import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApp, startIdentity } from '../../testing/kit.ts'
import { assert, createTestKey, toFields } from '../helpers/assertions.ts'
import { createRandom } from '../helpers/scheduler.ts'
import { type Credential, openSecretRaces } from '../helpers/secret-races.ts'

const CREDENTIALS: Credential[] = ['first', 'named', 'key']

const OTHERS = ['adds another', 'renames the client', 'removes it too', undefined] as const

/** Removes secrets and keys while requests use them, in random orders of their store calls. */
async function race (runs: number, seed: number): Promise<string> {
  const { play, close } = await openSecretRaces()
  const orders = new Set<string>()
  let got = 0
  try {
    for (let run = seed; run < seed + runs; run++) {
      const outcome = await play(CREDENTIALS[run % 3]!, 1 + Math.floor(run / 12) % 3, OTHERS[run % 4], createRandom(run))
      if (outcome.survivors > 0) throw new Error(`seed ${run}: ${outcome.survivors} tokens survived\n${outcome.order}`)
      orders.add(outcome.order)
      got += outcome.got
    }
  } finally {
    await close()
  }
  return `${runs} races from seed ${seed}, ${orders.size} different orders, ${got} tokens, no survivor`
}

interface Load { sent: number, failed: number, rotations: number, switches: number }

/** What a program authenticates by at present. */
interface Held { kind: 'secret' | 'private_key_jwt', present (): Promise<{ headers?: Record<string, string>, fields?: Record<string, string> }>, remove (): Promise<void> }

/**
 * Sends token requests at a rate. With `rotates`, what the program authenticates by is replaced all the time by adding, using and removing: a
 * secret by a secret, a secret by a key, a key by a key, and a key by a secret.
 */
async function load (seconds: number, rate: number, rotates: boolean): Promise<Load> {
  const directory = mkdtempSync(join(tmpdir(), 'identity-secrets-'))
  const closers: (() => unknown)[] = [() => rmSync(directory, { recursive: true })]
  const t = { teardown: (close: () => unknown) => { closers.unshift(close) } }
  try {
    const kit = await startIdentity({ t, app: createApp(), database: `sqlite:${join(directory, 'identity.db')}`, rateLimit: false })
    const { url } = await kit.listen()
    const { clients, users } = kit.app.identity
    const { user_id } = await users.create({ data: { account: 'ann', password: 'correct horse' } })
    const admin = { user_id, isAdmin: true }
    const { clientId } = await clients.create({ data: { redirectUris: [], scopes: ['read'], name: 'n', grants: ['client'], first_party: true }, credentials: true }, admin)
    const addSecret = async (): Promise<Held> => {
      const { id, secret } = await clients.addSecret(clientId, { data: { name: 'program' } }, admin)
      const headers = { authorization: `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}` }
      return { kind: 'secret', present: async () => ({ headers }), remove: async () => await clients.removeSecret(clientId, id, admin) }
    }
    const addKey = async (): Promise<Held> => {
      const key = createTestKey('ES256')
      const [added] = await clients.addKeys(clientId, { keys: [key.jwk] }, admin)
      return {
        kind: 'private_key_jwt',
        present: async () => ({ fields: toFields(await assert(clientId, url, key)) }),
        remove: async () => await clients.removeKey(clientId, added!.id, admin)
      }
    }
    let held = await addSecret()
    const figures: Load = { sent: 0, failed: 0, rotations: 0, switches: 0 }
    const flying = new Set<Promise<void>>()
    const send = async () => {
      figures.sent++
      try {
        const { headers = {}, fields = {} } = await held.present()
        const reply = await fetch(`${url}/api/v1/auth/token`, { method: 'POST', headers, body: new URLSearchParams({ grant_type: 'client_credentials', ...fields }) })
        await reply.arrayBuffer()
        if (reply.status !== 200) figures.failed++
      } catch {
        figures.failed++
      }
    }
    // The first request loads oidc-provider.
    await send()
    Object.assign(figures, { sent: 0, failed: 0 })
    const begin = performance.now()
    const state = { isOver: false }
    const rotate = async () => {
      for (let turn = 1; !state.isOver; turn++) {
        const next = await (turn % 4 < 2 ? addKey() : addSecret())
        if (next.kind !== held.kind) {
          await clients.patch(clientId, { data: { tokenAuth: next.kind, former: { until: new Date(kit.clock.now() + 60 * 60_000).toISOString() } } }, admin)
          figures.switches++
        }
        const former = { held, flying: [...flying] }
        held = next
        // As a program does: nothing of it uses the former one any more.
        await Promise.all(former.flying)
        await former.held.remove()
        figures.rotations++
        await sleep(20)
      }
    }
    const rotating = rotates ? rotate() : undefined
    while (performance.now() - begin < seconds * 1_000) {
      const due = Math.floor((performance.now() - begin) / 1_000 * rate)
      while (figures.sent < due) {
        const one: Promise<void> = send().finally(() => flying.delete(one))
        flying.add(one)
      }
      await sleep(5)
    }
    state.isOver = true
    await rotating
    await Promise.all(flying)
    return figures
  } finally {
    for (const close of closers) await close()
  }
}

/**
 * Secrets and keys of clients: 10,000 races of a removal with uses, and rotations under 200 token requests a second, compared with a run
 * without them.
 */
export async function run (runs = 10_000, seed = Math.floor(Date.now() / 86_400_000) * 100_000, seconds = 20): Promise<string> {
  const raced = await race(runs, seed)
  const [control, rotated] = [await load(seconds, 200, false), await load(seconds, 200, true)]
  if (rotated.failed > control.failed || rotated.switches === 0) throw new Error(`rotations failed requests: ${JSON.stringify({ control, rotated })}`)
  return `secrets: ${raced}\n  ${rotated.rotations} rotations, ${rotated.switches} of them of the method, during ${rotated.sent} token requests: ${rotated.failed} failed, ${control.failed} of ${control.sent} without them`
}

if (import.meta.main) {
  const [runs, seed, seconds] = process.argv.slice(2).map(Number)
  console.log(await run(runs, seed, seconds))
}
