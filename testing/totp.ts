import type { Clock } from '../lib/clock.ts'
import type { Services } from '../lib/identity.ts'
import type { UserRecord } from '../lib/records/user.ts'
import { generateCode } from '../lib/ways/totp.ts'

/** An authenticator app of a user. */
export interface TestTotp {
  /** The id of the factor. */
  id: string
  /** The recovery codes, which come with the first factor; none with a further one. */
  recoveryCodes: string[]
  /** The code that the app shows now. Each is good once: advance the clock by 30 s for the next one. */
  code (): Promise<string>
}

export type EnrolTotp = (user: string) => Promise<TestTotp>

/** Creates a `totp` for open services: it adds an authenticator app to a user at once. */
export function createTotp ({ store, ways, factors }: Pick<Services, 'store' | 'ways' | 'factors'>, now: Clock): EnrolTotp {
  const users = store.collection<UserRecord>('users')
  return async function totp (user) {
    const record = await users.get(user) ?? await users.getBy('account', user.toLowerCase())
    if (record === null) throw new Error(`there is no user '${user}'`)
    const actor = { user_id: record.id, epoch: record.epoch }
    const isFirst = !Object.values(record.ways ?? {}).some(({ kind }) => kind === 'recovery')
    const { id, seed } = await factors.beginTotp(actor, record.account)
    await ways.update((await ways.findPrepared(actor, id))!, { material: { step: 0 } })
    const recovery = isFirst ? [await factors.prepareCodes(actor)] : []
    await ways.name(actor, [id, ...recovery.map((set) => set.id)], { happened: [{ type: 'factor.added', id: record.id }] })
    return { id, recoveryCodes: recovery.flatMap(({ codes }) => codes), code: async () => await generateCode(seed, now()) }
  }
}
