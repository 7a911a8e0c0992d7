import fc from 'fast-check'
import t from 'tap'
import { forEachStore } from '../helpers/build.ts'
import { checkProperty } from '../helpers/property.ts'
import { createVictim } from '../helpers/undo-people.ts'

const HOUR = 60 * 60_000

type Act = 'identity' | 'factor' | 'passkey' | 'codes' | 'address' | 'password' | 'forgot' | 'undo' | 'reset'

const anyAct = fc.record({
  who: fc.constantFrom('owner' as const, 'thief' as const, 'thief' as const),
  act: fc.constantFrom<Act>('identity', 'identity', 'factor', 'passkey', 'codes', 'address', 'address', 'password', 'forgot', 'undo', 'reset'),
  /** Which of their links. */
  link: fc.nat(20),
  hours: fc.constantFrom(0, 0, 1, 3)
})

await forEachStore(t, async (t, build, store) => {
  const kit = await build(t)
  let [used, total] = [0, 0]
  await checkProperty(t, store === 'SQLite' ? 30 : 8, fc.asyncProperty(fc.boolean(), fc.boolean(), fc.array(anyAct, { minLength: 1, maxLength: 14 }), fc.nat(20), async (hasIdentity, hasFactor, acts, last) => {
    total++
    const victim = await createVictim(kit)
    const { owner } = victim
    if (hasIdentity) await victim.acts.identity(owner)
    // Then the thief gets in after a factor of the owner only with one of their own.
    if (hasFactor) await victim.acts.factor(owner)
    kit.clock.advance(73 * HOUR)
    owner.undos.length = 0
    const before = Object.keys((await victim.read()).ways ?? {})
    for (const { who, act, link, hours } of acts) {
      const role = victim[who]
      kit.clock.advance(hours * HOUR)
      if (act === 'undo') await victim.acts.undo(role, role.undos[link % Math.max(role.undos.length, 1)])
      else await victim.acts[act](role)
    }
    const live = []
    for (const token of owner.undos) if (await kit.app.identity.accounts.inspectUndo(token).then(() => true, () => false)) live.push(token)
    if (live.length === 0) return
    if (!await victim.acts.undo(owner, live[last % live.length])) throw new Error('the link of the owner is not good')
    if (!await victim.acts.reset(owner)) throw new Error('the owner has no link for a new password')
    used++
    const left = await victim.listWaysOfThief()
    if (left.length > 0) throw new Error(`the thief has ${left.join(', ')}`)
    const { ways = {} } = await victim.read()
    if (before.some((id) => !Object.hasOwn(ways, id) && !isCodes(id))) throw new Error('something from before has gone')
    if (await victim.prove(owner) === null) throw new Error('the owner is not in')

    /** Codes made anew replace those before. */
    function isCodes (id: string): boolean {
      return owner.ways.get(id) === 'recovery'
    }
  }))
  t.ok(used > total / 3, `a link of the owner was left in ${used} of ${total} runs`)
})
