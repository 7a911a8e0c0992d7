import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { UserRecord } from '../../lib/records/user.ts'
import { COLLECTIONS } from '../../lib/store/collections.ts'
import { openStore } from '../../lib/store/index.ts'
import { createTestKey } from '../helpers/assertions.ts'
import { isOfRelay } from '../helpers/events.ts'
import { callAs } from '../helpers/people.ts'
import { parseTable } from '../helpers/table.ts'
import { waitUntil } from '../helpers/wait.ts'
import { type Around, isListing, wrapStore } from '../helpers/wrap-store.ts'
import { eachStore, startHarness } from '../oidc/harness.ts'
import { onBothStores } from '../oidc/race-case.ts'
import { type Held, KINDS, type Kind, ROLE, ROOT, type Scene, declare, makeAll, openScene, openStage } from './token-kinds.ts'

// Every kind of token meets every end. docs/tokens.md says what follows; here each cell is tried.

t.setTimeout(300_000)

/** What an end does to a token: it lives on, it ends for good, or it is refused and works again after what undoes the end. */
const FATES = ['lives', 'ends', 'returns'] as const
type Fate = typeof FATES[number]

const TABLE = `
| end | sign-in | refresh | device | refresh of a device | client | JWT of a person | JWT of a client | minted | service | personal |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| another password by an administrator | ends | ends | ends | ends | ends | ends | ends | ends | lives | ends |
| another password by the person | ends | ends | ends | ends | ends | ends | ends | ends | lives | ends |
| signed out everywhere by the person | ends | ends | ends | ends | ends | ends | ends | ends | lives | ends |
| sessions ended by an administrator | ends | ends | ends | ends | ends | ends | ends | ends | lives | ends |
| factors reset | ends | ends | ends | ends | ends | ends | ends | ends | lives | ends |
| person disabled, enabled | ends | ends | ends | ends | ends | ends | ends | ends | returns | ends |
| person expired, extended | returns | returns | returns | returns | returns | returns | returns | returns | returns | returns |
| person deleted | ends | ends | ends | ends | ends | ends | ends | ends | ends | ends |
| account deleted by the person | ends | ends | ends | ends | ends | ends | ends | ends | ends | ends |
| person without the role that the resource requires, with it | returns | returns | returns | returns | lives | returns | lives | returns | lives | returns |
| client without the role that the resource requires, with it | lives | lives | lives | lives | returns | lives | returns | lives | returns | lives |
| person no administrator | lives | lives | lives | lives | lives | lives | lives | lives | lives | lives |
| client without the scope of the resource, with it | lives | returns | lives | returns | lives | lives | lives | lives | lives | lives |
| client disabled, enabled | ends | ends | ends | ends | ends | ends | ends | ends | ends | lives |
| client deleted | ends | ends | ends | ends | ends | ends | ends | ends | ends | lives |
| client made public | ends | ends | ends | ends | ends | ends | ends | ends | ends | lives |
| client taken over | ends | ends | ends | ends | ends | ends | ends | ends | ends | lives |
| another readable secret | ends | ends | ends | ends | ends | ends | ends | ends | ends | lives |
| its secret removed | ends | lives | ends | lives | ends | ends | ends | lives | lives | lives |
| its key removed | ends | lives | ends | lives | ends | ends | ends | lives | lives | lives |
| resource deleted, declared again | ends | ends | ends | ends | ends | ends | ends | ends | ends | ends |
| signed out at the browser | ends | lives | ends | lives | lives | lives | lives | lives | lives | lives |
| its own logout | ends | ends | ends | ends | ends | ends | ends | ends | ends | ends |
| revoked by its client | ends | ends | ends | ends | ends | ends | ends | ends | ends | lives |
| removed from the service tokens | lives | lives | lives | lives | lives | lives | lives | lives | ends | lives |
| removed from the personal tokens | lives | lives | lives | lives | lives | lives | lives | lives | lives | ends |
| all sessions ended by the operator | ends | ends | ends | ends | ends | ends | ends | ends | ends | ends |
`

/** An end by a setting, which test/oidc/personal-tokens.test.ts tries. */
const OF_SETTINGS = 'the option personalTokens'

interface Ending {
  /** How the rows of docs/tokens.md begin that say it. */
  rows: string[]
  /** What has to be there before the tokens are made. */
  prepare?: (scene: Scene) => Promise<unknown>
  /** Ends the tokens of a scene. */
  act?: (scene: Scene) => Promise<unknown>
  /** Ends one token. */
  each?: (scene: Scene, held: Held) => Promise<unknown>
  /** Undoes the end, where that can be done. */
  undo?: (scene: Scene) => Promise<unknown>
  /** What else is true of a token that lives. */
  check?: (t: Test, scene: Scene, held: Held) => Promise<unknown>
}

const setExpiry = async ({ harness: { kit }, user }: Scene, days: number) =>
  await kit.app.identity.store.collection<UserRecord>('users').update(user.user_id, { set: { expired_at: new Date(kit.clock.now() + days * 86_400_000).toISOString() } })

const setRoles = async ({ harness: { kit }, user }: Scene, ...roles: string[]) =>
  await kit.app.identity.users.patch(user.user_id, { data: { roles: Object.fromEntries(roles.map((role) => [role, true as const])) } }, ROOT)

const patchClient = async ({ boss, app }: Scene, body: object) => await expectDone(boss.patch(`/client/${app.client_id}`, body))

/** Calls of the API as the person, with a token of an operator: so they have all of the person's power. */
const asPerson = async ({ harness: { kit }, user }: Scene) => callAs(kit, (await kit.mint({ user: user.user_id })).headers)

async function expectDone (reply: Promise<{ status: number, body: unknown }>): Promise<void> {
  const { status, body } = await reply
  if (![200, 204].includes(status)) throw new Error(`the end was refused: ${status} ${JSON.stringify(body)}`)
}

/** The scene goes on with the present secret of its client. */
async function readSecret (scene: Scene): Promise<void> {
  const { clientSecret = '' } = await scene.harness.kit.app.identity.clients.require(scene.app.client_id, ROOT)
  scene.app = { ...scene.app, client_secret: clientSecret }
}

async function infoOf ({ harness }: Scene, token: string): Promise<{ roles: object, scopes: string[] }> {
  return ((await harness.get('tokeninfo', token)).body as { data: { roles: object, scopes: string[] } }).data
}

const ENDINGS: Record<string, Ending> = {
  'another password by an administrator': {
    rows: ['the person or the owner gets a new password'],
    act: async ({ boss, user }) => await expectDone(boss.patch(`/user/${user.user_id}`, { data: { password: 'another horse' } }))
  },
  'another password by the person': {
    rows: ['the person or the owner gets a new password'],
    act: async (scene) => await expectDone((await asPerson(scene)).patch('/user', { data: { password: 'another horse', current_password: scene.user.password } }))
  },
  'signed out everywhere by the person': {
    rows: ['the person or the owner gets a new password'],
    act: async (scene) => await expectDone((await asPerson(scene)).delete('/auth/sessions?all=true'))
  },
  'sessions ended by an administrator': {
    rows: ['the person or the owner gets a new password'],
    act: async ({ boss, user }) => await expectDone(boss.delete(`/user/${user.user_id}/sessions`))
  },
  'factors reset': {
    rows: ['the person or the owner gets a new password'],
    act: async ({ boss, user }) => await expectDone(boss.post(`/user/${user.user_id}/factors/reset`))
  },
  'person disabled, enabled': {
    rows: ['they are disabled or expired', 'they are enabled again'],
    act: async ({ boss, user }) => await expectDone(boss.patch(`/user/${user.user_id}`, { disable: true })),
    undo: async ({ boss, user }) => await expectDone(boss.patch(`/user/${user.user_id}`, { disable: false }))
  },
  'person expired, extended': {
    rows: ['they are disabled or expired', 'they are enabled again'],
    act: async (scene) => await setExpiry(scene, -1),
    undo: async (scene) => await setExpiry(scene, 1)
  },
  'person deleted': {
    rows: ['they are deleted'],
    act: async ({ boss, user }) => await expectDone(boss.delete(`/user/${user.user_id}`))
  },
  'account deleted by the person': {
    rows: ['they are deleted'],
    act: async (scene) => await expectDone((await asPerson(scene)).send({ method: 'DELETE', url: '/user', payload: { data: { current_password: scene.user.password } } }))
  },
  'person without the role that the resource requires, with it': {
    rows: ["the person, or of a client's own token the client, loses the role"],
    act: async (scene) => await setRoles(scene),
    undo: async (scene) => await setRoles(scene, ROLE)
  },
  'client without the role that the resource requires, with it': {
    rows: ["the person, or of a client's own token the client, loses the role"],
    act: async (scene) => await patchClient(scene, { data: { roles: {} } }),
    undo: async (scene) => await patchClient(scene, { data: { roles: { [ROLE]: true } } })
  },
  'person no administrator': {
    rows: [],
    prepare: async (scene) => await setRoles(scene, ROLE, 'admin'),
    act: async (scene) => await setRoles(scene, ROLE),
    check: async (t, scene, held) => t.notOk('admin' in (await infoOf(scene, held.access())).roles, `${held.kind}: without the role`)
  },
  'client without the scope of the resource, with it': {
    rows: ['the client loses a scope'],
    act: async (scene) => await patchClient(scene, { data: { scopes: ['read'] } }),
    undo: async (scene) => await patchClient(scene, { data: { scopes: ['read', scene.stock.scope, scene.orders.scope] } }),
    // A personal access token has no such client.
    check: async (t, scene, held) => held.kind === 'personal' || t.notMatch((await infoOf(scene, held.access())).scopes.join(' '), ':read', `${held.kind}: without the scope`)
  },
  'client disabled, enabled': {
    rows: ['the client is disabled'],
    act: async (scene) => await patchClient(scene, { data: { disabled: true } }),
    undo: async (scene) => await patchClient(scene, { data: { disabled: false } })
  },
  'client deleted': {
    rows: [],
    act: async ({ boss, app }) => await expectDone(boss.delete(`/client/${app.client_id}`))
  },
  'client made public': {
    rows: ['a new readable secret'],
    // A public client has no roles.
    prepare: async (scene) => {
      for (const { id } of [scene.stock, scene.orders]) await expectDone(scene.boss.patch(`/resource/${id}`, { data: { roles: null } }))
      await patchClient(scene, { data: { roles: {} } })
    },
    act: async (scene) => {
      await patchClient(scene, { data: { tokenAuth: 'none', grants: ['code', 'refresh', 'device'] } })
      scene.app = { ...scene.app, client_secret: '' }
    }
  },
  'client taken over': {
    rows: ['a new readable secret'],
    act: async (scene) => {
      await patchClient(scene, { take_over: true })
      await readSecret(scene)
    }
  },
  'another readable secret': {
    rows: ['a new readable secret'],
    act: async (scene) => {
      await patchClient(scene, { regen_secret: true })
      await readSecret(scene)
    }
  },
  'its secret removed': {
    rows: ['the secret or key that got it is removed'],
    prepare: async (scene) => {
      const { id, secret } = await scene.harness.kit.secret(scene.app.client_id)
      scene.credential = id
      scene.app = { ...scene.app, client_secret: secret }
    },
    act: async (scene) => {
      await expectDone(scene.boss.delete(`/client/${scene.app.client_id}/secret/${scene.credential}`))
      await readSecret(scene)
    }
  },
  'its key removed': {
    rows: ['the secret or key that got it is removed'],
    prepare: async (scene) => {
      const { clients } = scene.harness.kit.app.identity
      const key = createTestKey('ES256', 'first')
      const [added] = await clients.addKeys(scene.app.client_id, { keys: [key.jwk] }, ROOT)
      scene.credential = added!.id
      await clients.patch(scene.app.client_id, { data: { tokenAuth: 'private_key_jwt' } }, ROOT)
      scene.key = key
    },
    act: async (scene) => {
      const { clients } = scene.harness.kit.app.identity
      scene.key = createTestKey('ES256', 'second')
      await clients.addKeys(scene.app.client_id, { keys: [scene.key.jwk] }, ROOT)
      await clients.removeKey(scene.app.client_id, scene.credential!, ROOT)
    }
  },
  'resource deleted, declared again': {
    rows: ['its resource is deleted'],
    act: async ({ boss, stock, orders }) => { for (const { id } of [stock, orders]) await expectDone(boss.delete(`/resource/${id}`)) },
    undo: async (scene) => {
      await declare(scene, scene.stock.name, 'opaque')
      await declare(scene, scene.orders.name, 'jwt')
    }
  },
  'signed out at the browser': {
    rows: ['the person signs out at the browser'],
    act: async ({ browser }) => {
      const { title } = await (await browser.open('/api/v1/auth/session/end')).submit({ logout: 'yes' })
      if (title !== 'Signed out') throw new Error(title)
    }
  },
  'its own logout': {
    rows: ['logout or revocation'],
    each: async ({ harness: { kit } }, { access }) => await expectDone(callAs(kit, { authorization: `Bearer ${access()}` }).post('/auth/logout'))
  },
  'revoked by its client': {
    rows: ['logout or revocation'],
    each: async ({ send }, { text }) => await expectDone(send('revoke', { token: text() }))
  },
  'removed from the service tokens': {
    rows: ['somebody removes it'],
    each: async ({ boss, app, harness: { kit } }, { kind, access }) => {
      const { token } = await kit.app.identity.tokens.authenticate(access())
      const { status } = await boss.delete(`/client/${app.client_id}/token/${token.id}`)
      if (status !== (kind === 'service' ? 204 : 404)) throw new Error(`${kind}: ${status}`)
    }
  },
  'removed from the personal tokens': {
    rows: ['somebody removes it'],
    each: async ({ boss, user, harness: { kit } }, { kind, access }) => {
      const { token } = await kit.app.identity.tokens.authenticate(access())
      const { status } = await boss.delete(`/user/${user.user_id}/token/${token.id}`)
      if (status !== (kind === 'personal' ? 204 : 404)) throw new Error(`${kind}: ${status}`)
    }
  },
  // What `sessions end --all` does.
  'all sessions ended by the operator': {
    rows: ['sessions end --all'],
    act: async ({ harness: { kit }, user }) => {
      await kit.app.identity.tokenSessions.end(user.user_id)
      await kit.app.identity.serviceTokens.endAll()
    }
  }
}

const [[, ...columns] = [], , ...rows] = TABLE.trim().split('\n').map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim()))

/** What an end does to each kind. */
const fates = new Map(rows.map(([name = '', ...cells]) => [name, new Map(cells.map((cell, index) => [columns[index], cell]))]))

const findFate = (end: string, kind: Kind): Fate => fates.get(end)!.get(kind) as Fate

t.test('the table has a cell for every kind and every end', async (t) => {
  t.strictSame(columns, KINDS)
  t.strictSame([...fates.keys()].sort(), Object.keys(ENDINGS).sort())
  for (const [name, cells] of fates) {
    t.equal(cells.size, KINDS.length, name)
    for (const [kind, fate] of cells) t.ok((FATES as readonly string[]).includes(fate), `${name}: ${kind}: ${fate}`)
  }
  const documented = parseTable(readFileSync(join(import.meta.dirname, '../../docs/tokens.md'), 'utf8'), 'what happens').map(([what = '']) => what)
  const tried = [...Object.values(ENDINGS).flatMap((ending) => ending.rows), OF_SETTINGS]
  t.strictSame(documented.filter((what) => !tried.some((text) => what.startsWith(text))), [], 'docs/tokens.md names no other end')
  t.strictSame(tried.filter((text) => !documented.some((what) => what.startsWith(text))), [], 'and each of these')
  for (const kind of KINDS) t.ok([...fates.values()].some((cells) => cells.get(kind) === 'ends'), `${kind} has an end`)
})

/** The kinds whose tokens work. */
async function listWorking (all: readonly Held[]): Promise<Kind[]> {
  const working: Kind[] = []
  for (const { kind, works } of all) if (await works()) working.push(kind)
  return working
}

eachStore(t, 'every kind of token at every end', async (t, start) => {
  const stage = await openStage(t, await start({ personalTokens: { maxDays: 30 }, selfDelete: true, oidc: { signInLimit: 10_000 } }))
  const { kit } = stage.harness
  for (const [name, { prepare, act, each, undo, check }] of Object.entries(ENDINGS)) {
    await t.test(name, async (t) => {
      const scene = await openScene(stage)
      await prepare?.(scene)
      const all = await makeAll(scene)
      const listKinds = (...expected: Fate[]) => KINDS.filter((kind) => expected.includes(findFate(name, kind)))
      t.strictSame(await listWorking(all), KINDS, 'before')
      await act?.(scene)
      for (const [index, held] of each === undefined ? [] : all.entries()) {
        await each!(scene, held)
        const left = KINDS.filter((kind, at) => at > index || findFate(name, kind) === 'lives')
        t.strictSame(await listWorking(all), left, `after that of ${held.kind}`)
      }
      t.strictSame(await listWorking(all), listKinds('lives'), 'after it')
      await kit.app.identity.tokens.settle()
      await kit.flush()
      t.strictSame(await listWorking(all), listKinds('lives'), 'after the cleanup')
      if (check !== undefined) for (const held of all) await check(t, scene, held)
      if (undo === undefined) return
      await undo(scene)
      await kit.app.identity.tokens.settle()
      t.strictSame(await listWorking(all), listKinds('lives', 'returns'), 'after its undoing')
    })
  }
})

/** A use that reads the store before an end, and answers after it. */
interface Late { kind: Kind, status: Promise<number>, got: () => string | undefined }

/** Store calls that a test holds back or watches. */
class Interposed {
  /** What each call of an end waits for. Its own calls pass. */
  during: (() => Promise<unknown>) | undefined
  /** What look-ups of tokens wait for once they have read. */
  held: Promise<unknown> | undefined
  reads = 0
  calls = 0
  #inside = false

  readonly around: Around = (call, run) => {
    const { during, held } = this
    if (held !== undefined && call.method === 'getLinked' && /^(?:access|refresh)_tokens$/.test(call.collection)) {
      this.reads++
      return Promise.resolve(run()).then(async (found) => await held.then(() => found))
    }
    if (during === undefined || this.#inside || isListing(call.method) || isOfRelay(call)) return run()
    this.#inside = true
    this.calls++
    return during().finally(() => { this.#inside = false }).then(run)
  }
}

/** Begins a use of each token, up to the moment when all of them have read it. */
async function beginLate (interposed: Interposed, { harness: { kit }, send }: Scene, all: readonly Held[], gate: Promise<unknown>): Promise<Late[]> {
  Object.assign(interposed, { held: gate, reads: 0 })
  const late = all.map(({ kind, access, text }): Late => {
    if (text() === access()) {
      const status = kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${access()}` } }).then(({ statusCode }) => statusCode)
      return { kind, status, got: () => undefined }
    }
    let got: string | undefined
    const status = send('token', { grant_type: 'refresh_token', refresh_token: text() }).then(({ status, body }) => {
      got = body.access_token as string | undefined
      return status
    })
    return { kind, status, got: () => got }
  })
  await waitUntil('all uses have read', () => interposed.reads >= all.length)
  interposed.held = undefined
  return late
}

/** What engines do differently is how they change a record of each kind: on MongoDB, one end of each kind suffices. */
const OF_EACH_KIND = ['another password by an administrator', 'person deleted', 'client disabled, enabled', 'client deleted', 'its secret removed', 'resource deleted, declared again', 'revoked by its client']

onBothStores(t, (t, place, engine) => {
  t.test('uses that are concurrent with each end leave nobody with a token that works', async (t) => {
    const store = await openStore(place(t), { collections: COLLECTIONS, now: Date.now })
    t.teardown(() => store.close())
    const interposed = new Interposed()
    const stage = await openStage(t, await startHarness(t, { store: wrapStore(store, interposed.around), personalTokens: { maxDays: 30 }, selfDelete: true, oidc: { signInLimit: 10_000 } }))
    const { kit, get } = stage.harness
    for (const [name, { prepare, act, each }] of Object.entries(ENDINGS)) {
      if (engine === 'mongodb' && !OF_EACH_KIND.includes(name)) continue
      await t.test(name, async (t) => {
        const scene = await openScene(stage)
        await prepare?.(scene)
        const all = await makeAll(scene)
        await kit.app.identity.tokens.settle()
        await kit.flush()
        const ended = all.filter(({ kind }) => findFate(name, kind) !== 'lives')
        const listSurvivors = async () => (await listWorking(ended)).map((kind) => `${kind} at ${name}`)
        let open = () => {}
        const late = await beginLate(interposed, scene, all, new Promise<void>((resolve) => { open = resolve }))
        interposed.calls = 0
        interposed.during = async () => await Promise.all(all.map(async ({ access }) => await kit.inject({ url: '/api/v1/auth/tokeninfo', headers: { authorization: `Bearer ${access()}` } })))
        try {
          await act?.(scene)
          if (each !== undefined) for (const held of all) await each(scene, held)
        } finally {
          interposed.during = undefined
        }
        t.ok(interposed.calls > 0, 'there were uses during the end')
        t.strictSame(await listSurvivors(), [], 'as soon as it is answered')
        open()
        const answered: Kind[] = []
        for (const { kind, status, got } of late) {
          if (await status === 200) answered.push(kind)
          const token = got()
          // A client that has lost a scope has lost no token.
          if (token !== undefined && findFate(name, kind) !== 'lives' && findFate(name, 'sign-in') !== 'lives') t.equal((await get('tokeninfo', token)).status, 401, `what ${kind} got`)
        }
        t.ok(answered.length > 0, 'who has read before the end may be answered')
        t.strictSame(await listSurvivors(), [], 'and nothing is left of that')
      })
    }
  })
})
