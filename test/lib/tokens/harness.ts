import type { Test } from 'tap'
import type { Happening } from '../../../lib/events/types.ts'
import type { GrantRecord, TokenRecord } from '../../../lib/records/token.ts'
import type { Document, Json } from '../../../lib/store/port.ts'
import { createToken, hashToken } from '../../../lib/crypto/random-token.ts'
import { BEGIN, openRules } from '../../helpers/services.ts'

export const ADMIN = { user_id: 'admin', isAdmin: true }
const INVALID = { code: 'ErrUnknown', statusCode: 401, headers: { 'www-authenticate': /^Bearer error="invalid_token"/ } }
export const HOUR = 3600
/** The collections whose records belong to a session. */
export const OWNED = ['refresh_tokens', 'access_tokens', 'authorization_codes', 'device_codes'] as const

/** The time so many seconds after the test began. */
export const at = (seconds: number) => new Date(Date.parse(BEGIN) + seconds * 1000).toISOString()

/** Fields of a record; undefined for one that it does not have. */
export type Fields = { id?: string, [field: string]: Json | undefined }

/** Ann, an app, and the recorded events. */
export async function openLifecycle (t: Test, options: Parameters<typeof openRules>[1] = {}) {
  const events: Happening[] = []
  const rules = await openRules(t, { refreshTtl: 60, record: (happening) => { events.push(happening) }, ...options })
  const { user_id } = await rules.users.create({ data: { account: 'ann', password: 'p' } })
  const { clientId: client_id } = await rules.clients.create({ data: { redirectUris: [], scopes: ['read', 'write'], name: 'app', userId: user_id } }, ADMIN)
  events.length = 0
  const grants = rules.store.collection<GrantRecord>('grants')
  const subject = { user_id, client_id, user_epoch: 0, client_epoch: 0 }
  return {
    ...rules,
    user_id,
    client_id,
    subject,
    events,
    grants,
    read: async (name: string, token: string) => await rules.store.collection<TokenRecord>(name).get(hashToken(token)),
    count: async (name: string) => await rules.store.collection(name).count(),
    isAlive: async (token: string) => {
      try {
        await rules.tokens.authenticate(token)
        return true
      } catch (error) {
        t.match(error, INVALID)
        return false
      }
    },
    /** Mints a session: its grant, and both its tokens. */
    mint: async (options: Partial<Parameters<typeof rules.tokens.mint>[0]> = {}) => {
      const minted = await rules.tokens.mint({ user_id, client_id, refresh: true, ...options })
      const grant_id = (await rules.store.collection<TokenRecord>('access_tokens').get(hashToken(minted.access_token)))!.grant_id!
      return { ...minted, refresh_token: minted.refresh_token!, grant_id }
    },
    /** Adds a record as the authorization server writes them. */
    add: async (name: string, { id = createToken(), ...fields }: Fields = {}) => {
      const owner = name === 'sign_in_sessions' ? { user_id, user_epoch: 0 } : subject
      await rules.store.collection<Document & Fields>(name).insert({ ...owner, created_at: BEGIN, expired_at: at(HOUR), ...fields, id })
      return id
    }
  }
}
