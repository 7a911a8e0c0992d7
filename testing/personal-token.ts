import type { Clock } from '../lib/clock.ts'
import type { Services } from '../lib/identity.ts'
import type { UserRecord } from '../lib/records/user.ts'

/** A personal access token of a user. */
export interface TestPersonalToken {
  id: string
  user_id: string
  token: string
  /** Headers for inject or fetch: `{ authorization: 'Bearer ...' }`. */
  headers: { authorization: string }
}

/**
 * Makes a personal access token of a user, by their id or account. It needs the option `personalTokens`.
 * @param options.name `test` by default
 * @param options.scopes of this service, or of the resource; none by default
 * @param options.resource the URI of the resource that it is for
 * @param options.expires_in seconds by the kit's clock; absent: a day
 */
export type AddPersonalToken = (
  user: string, options?: { name?: string, scopes?: string[], resource?: string, expires_in?: number }
) => Promise<TestPersonalToken>

const DAY = 24 * 60 * 60

/** Creates a `personalToken` for open services. */
export function createPersonalTokenHelper ({ store, personalTokens }: Pick<Services, 'store' | 'personalTokens'>, now: Clock): AddPersonalToken {
  const users = store.collection<UserRecord>('users')
  return async function personalToken (user, { name = 'test', scopes = [], resource, expires_in = DAY } = {}) {
    if (personalTokens === undefined) throw new Error('personalTokens: the option is off')
    const found = await users.get(user) ?? await users.getBy('account', user)
    if (found === null) throw new Error(`there is no user '${user}'`)
    const expiresAt = new Date(now() + expires_in * 1000).toISOString()
    const { id, token } = await personalTokens.addFor(found.id, { name, scopes, expiresAt, ...(resource !== undefined && { resource }) })
    return { id, user_id: found.id, token, headers: { authorization: `Bearer ${token}` } }
  }
}
