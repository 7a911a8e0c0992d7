import fc from 'fast-check'
import t from 'tap'
import { listUndos } from '../../lib/user-changes/undos.ts'
import type { TestKit } from '../../testing/index.ts'
import { build, forEachStore } from '../helpers/build.ts'
import { checkProperty } from '../helpers/property.ts'
import { createVictim } from '../helpers/undo-people.ts'

const HOUR = 60 * 60_000

type Act = 'identity' | 'factor' | 'passkey' | 'codes' | 'address' | 'password' | 'forgot' | 'undo' | 'reset' | 'remove'

const anyAct = fc.record({
  who: fc.constantFrom('owner' as const, 'thief' as const, 'thief' as const),
  act: fc.constantFrom<Act>('identity', 'identity', 'factor', 'passkey', 'codes', 'address', 'address', 'password', 'forgot', 'undo', 'reset', 'remove'),
  /** Which of their links. */
  link: fc.nat(20),
  hours: fc.constantFrom(0, 0, 0, 1, 3, 30)
})

/** What the account has at first, the acts, and which of their links the owner uses in the end. */
const anyStory = fc.record({ hasIdentity: fc.boolean(), hasFactor: fc.boolean(), acts: fc.array(anyAct, { minLength: 1, maxLength: 14 }), last: fc.nat(20) })

type Story = typeof anyStory extends fc.Arbitrary<infer T> ? T : never

/** @returns whether the owner had a link; throws where they lose something, or the thief keeps something */
async function play (kit: TestKit, { hasIdentity, hasFactor, acts, last }: Story): Promise<boolean> {
  const victim = await createVictim(kit)
  const { owner, read, prove, listWaysOfThief } = victim
  if (hasIdentity) await victim.acts.identity(owner)
  // Then the thief gets in after a factor of the owner only with one of their own.
  if (hasFactor) await victim.acts.factor(owner)
  kit.clock.advance(73 * HOUR)
  owner.undos.length = 0
  const before = Object.keys((await read()).ways ?? {})
  for (const { who, act, link, hours } of acts) {
    const role = victim[who]
    kit.clock.advance(hours * HOUR)
    if (act === 'undo') await victim.acts.undo(role, role.undos[link % Math.max(role.undos.length, 1)])
    else await victim.acts[act](role)
  }
  const live = []
  for (const token of new Set(owner.undos)) if (await kit.app.identity.accounts.inspectUndo(token).then(() => true, () => false)) live.push(token)
  const found = await read()
  const list = listUndos(found, kit.clock.now())
  // Nobody at the owner's mailbox has answered for 72 hours: since then the account is the other one's.
  if (live.length === 0 || !owner.mailboxes.has(list[0]?.mailbox ?? '')) return false
  const had = Object.keys(found.ways ?? {})
  const established = had.filter((id) => !list.some(({ added }) => added.includes(id)))
  if (!await victim.acts.undo(owner, live[last % live.length])) throw new Error('the link of the owner is not good')
  if (!await victim.acts.reset(owner)) throw new Error('the owner has no link for a new password')
  const left = await listWaysOfThief(established)
  if (left.length > 0) throw new Error(`the thief has ${left.join(', ')}`)
  const { ways = {} } = await read()
  const isFactorLeft = established.some((id) => ways[id]?.kind === 'totp' || ways[id]?.kind === 'passkey')
  const kept = established.filter((id) => isFactorLeft || ways[id]?.kind !== 'recovery')
  if (kept.some((id) => !Object.hasOwn(ways, id))) throw new Error('something established has gone')
  if (Object.keys(ways).some((id) => !had.includes(id))) throw new Error('something has come')
  if (established.some((id) => victim.thief.ways.has(id))) return true
  if (await prove(owner) === null) throw new Error('the owner is not in')
  const own = before.filter((id) => Object.hasOwn(ways, id))
  const isIdentity = own.some((id) => ways[id]!.kind === 'upstream')
  const alone = { ...owner, passwords: new Set<string>(), ways: new Map(own.map((id) => [id, ways[id]!.kind])) }
  if (isIdentity && await prove(alone) === null) throw new Error('the identity from before opens nothing')
  return true
}

await forEachStore(t, async (t, buildOn, store) => {
  // In memory: most of the time would go by until writes are durable, and what a store does is tested on each of them elsewhere.
  const kit = store === 'SQLite' ? await build(t) : await buildOn(t)
  let [used, total] = [0, 0]
  await checkProperty(t, store === 'SQLite' ? 60 : 6, fc.asyncProperty(anyStory, async (story) => {
    total++
    if (await play(kit, story)) used++
  }))
  t.ok(used > total / 4, `a link of the owner was left in ${used} of ${total} runs`)
})
