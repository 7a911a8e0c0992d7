import type { CreatePersonalToken, PersonalToken } from '../../schemas/personal-token.ts'
import type { PersonalTokens } from '../../schemas/options.ts'
import { isNeverPersonal } from '../api-scopes.ts'
import type { Base } from '../base.ts'
import { checkScopes } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { type NamedTokens, type Audience, checkEnd, findAudience } from '../clients/named-tokens.ts'
import type { SecretEnds } from '../clients/secret-ends.ts'
import { createPrefixed } from '../crypto/prefixed-secret.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import { checkName } from '../names.ts'
import type { Notices } from '../notice.ts'
import { type TokenRecord, USER_HOLDERS, toUserHolder } from '../records/token.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import { type Registry, readRegistry } from '../resources/registry.ts'
import { type Actor, holdsRole } from '../roles.ts'
import { scan } from '../store/scan.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { PERSONAL } from '../tokens/validity.ts'
import type { ConfirmRecord } from '../user-changes/user-changes.ts'
import type { Brought } from '../users/confirm.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import type { Users } from '../users/users.ts'
import { isOfferedResource, listOffered } from './offer.ts'
import { PERSONAL_CLIENT_ID } from './rule.ts'

/** Personal access tokens of a person. */
const MOST = 50

const DAY = 24 * 60 * 60_000

interface PersonalTokenParts extends Pick<Base, 'store' | 'now' | 'recorder'> {
  settings: PersonalTokens
  tokens: Pick<Tokens, 'issueNamed'>
  named: NamedTokens
  ends: Pick<SecretEnds, 'add'>
  notices: Pick<Notices, 'write'>
  users: Pick<Users, 'confirm' | 'people'>
  requireUser: StoredUsers['requireUser']
}

/** What somebody may choose for a new token. */
export interface Offer {
  maxDays: number
  /** Scopes of this service. */
  scopes: string[]
  resources: { uri: string, name: string, scopes: string[] }[]
}

/** A new token, which is not shown again. */
export interface CreatedToken { id: string, token: string, expiresAt: string }

/** @throws Error that names the option */
export function checkSettings ({ scopes }: PersonalTokens): void {
  const never = scopes?.find(isNeverPersonal)
  if (never !== undefined) throw new Error(`option personalTokens.scopes: no personal access token may have ${never}`)
}

/**
 * Personal access tokens: a person makes them for their scripts and jobs. Each is a record of `access_tokens` with the person's epoch, so that
 * whatever ends their sessions ends it too.
 */
export function createPersonalTokens (
  { store, now, recorder, settings, tokens, named, ends, notices, requireUser, users: { confirm, people } }: PersonalTokenParts
) {
  checkSettings(settings)
  const users = store.collection<UserRecord>('users')
  const records = store.collection<TokenRecord>('access_tokens')

  const listValid = async (user: UserRecord): Promise<TokenRecord[]> => await named.listValid(toUserHolder(user.id), { user_id: user })

  const mayMake = ({ roles }: Pick<UserRecord, 'roles'>): boolean => settings.roles?.some((role) => holdsRole(roles, role)) ?? true

  /** @throws ErrParam */
  function checkAudience (registry: Registry, uri: string | undefined): Audience {
    const audience = findAudience(registry, uri)
    if (audience.resource !== undefined && !isOfferedResource(settings, audience.resource)) {
      throw paramError('resource', 'personal access tokens are not for this resource')
    }
    return audience
  }

  /** @throws ErrParam */
  function checkOffered (scopes: string[], registry: Registry, { resource_id }: Audience): void {
    const offered = listOffered(settings, registry, resource_id)
    const refused = scopes.find((scope) => !offered.includes(scope))
    if (refused !== undefined) throw paramError('scopes', `a personal access token may not have the scope ${refused}${resource_id === undefined ? '' : ' of this resource'}`)
  }

  /**
   * Checks a new token with what is stored of its user now: their sessions may have ended since they were read.
   * @throws ErrNotFound, ErrParam, ErrLimit, and what `confirmUser` throws
   */
  async function checkNew ({ id, user_id }: TokenRecord, confirmUser: ConfirmRecord): Promise<void> {
    const user = await requireUser(user_id)
    await confirmUser(user)
    // Counted with this one, so that of two concurrent requests none exceeds the limit.
    const valid = await listValid(user)
    if (!valid.some((record) => record.id === id)) throw paramError('userId', 'the sessions of the user were ended meanwhile')
    if (valid.length > MOST) throw new IdentityError('ErrLimit', `tokens: a user may have at most ${MOST} personal access tokens`)
  }

  /**
   * @param confirmUser called with the user's record before the token is written and again after it: what was proved may have ended meanwhile
   * @throws ErrParam, ErrPerm, ErrLimit, and what `confirmUser` throws
   */
  async function make (user_id: string, data: Omit<CreatePersonalToken['data'], 'current_password'>, confirmUser: ConfirmRecord): Promise<CreatedToken> {
    if (data.name.trim() === '') throw paramError('name', 'must not be empty')
    const name = checkName('name', data.name)
    const registry = await readRegistry(store)
    const audience = checkAudience(registry, data.resource)
    const scopes = checkScopes(data.scopes)
    checkOffered(scopes, registry, audience)
    const expired_at = checkEnd(data.expiresAt, now(), [settings.maxDays * DAY, `${settings.maxDays} days`])
    const user = await requireUser(user_id)
    await confirmUser(user)
    if (!mayMake(user)) throw permError('userId', 'the user has none of the roles that may make personal access tokens')
    if (!isActive(user, toTimestamp(now()))) throw paramError('userId', 'must be a user who is not disabled or expired')
    const token = createPrefixed('personal')
    const record = await tokens.issueNamed({
      token,
      kind: PERSONAL,
      holder: toUserHolder(user.id),
      user_id: user.id,
      user_epoch: user.epoch,
      client_id: PERSONAL_CLIENT_ID,
      client_epoch: 0,
      scopes,
      ...audience,
      name,
      expired_at
    })
    try {
      await checkNew(record, confirmUser)
      await ends.add(PERSONAL_CLIENT_ID, { id: record.id, created_at: record.created_at, expires_at: expired_at }, record.holder)
      const mails = await notices.write('personal-token-added', user, { time: record.created_at, values: { last4: token.slice(-4) } })
      await recorder.insert({ type: 'token.personal_created', id: record.id, user_id: user.id, client_id: PERSONAL_CLIENT_ID }, mails)
    } catch (error) {
      await named.withdraw(record)
      throw error
    }
    return { id: record.id, token, expiresAt: expired_at }
  }

  return {
    /** Tokens that a person may have. */
    most: MOST,

    /** Whether somebody with these roles may make tokens. */
    mayMake,

    /** What a person may choose for a new token. */
    async offer (): Promise<Offer> {
      const registry = await readRegistry(store)
      const resources = Object.entries(registry.resources)
        .filter(([, { uri }]) => isOfferedResource(settings, uri))
        .map(([id, { uri, name }]) => ({ uri, name, scopes: listOffered(settings, registry, id) }))
      return {
        maxDays: settings.maxDays,
        scopes: listOffered(settings, registry, undefined),
        resources: resources.filter(({ scopes }) => scopes.some((scope) => scope !== 'roles'))
      }
    },

    /**
     * Makes a token of the caller (`POST /user/token`), after a fresh proof. They get an email.
     * @throws ErrParam, ErrPerm, ErrLimit, RestrictedError, ErrUnknown with a challenge to sign in again
     */
    async add (actor: Actor, { data: { current_password: password, ...data } }: CreatePersonalToken, brought: Brought = {}): Promise<CreatedToken> {
      const confirmed = await confirm(actor, { password, ...brought })
      return await make(actor.user_id, data, confirmed.confirm)
    },

    /** The same for an operator, on the command line and in the testing kit. @throws ErrParam, ErrPerm, ErrLimit, ErrNotFound */
    addFor: async (user_id: string, data: Omit<CreatePersonalToken['data'], 'current_password'>): Promise<CreatedToken> =>
      await make(user_id, data, () => {}),

    /** The valid tokens of the caller, the latest first, without the tokens themselves. @throws ErrNotFound */
    async list (user_id: string): Promise<PersonalToken[]> {
      return await named.show(toUserHolder(user_id), await listValid(await requireUser(user_id)))
    },

    /** The same of somebody else. @throws ErrNotFound, ErrPerm */
    async listOf (user_id: string, actor: Actor): Promise<PersonalToken[]> {
      return await named.show(toUserHolder(user_id), await listValid(await people.requireReadable(user_id, actor)))
    },

    /** Ends a token of a user. @throws ErrNotFound */
    async remove (user_id: string, tokenId: string): Promise<void> {
      await named.remove(toUserHolder(user_id), tokenId, 'user')
    },

    /** The same of somebody else. @throws ErrNotFound, ErrPerm */
    async removeOf (user_id: string, tokenId: string, actor: Actor): Promise<void> {
      await people.requireHelpable(user_id, actor)
      await named.remove(toUserHolder(user_id), tokenId, 'user')
    },

    /** How many tokens of a user are valid: those that end with their sessions. */
    async count (user: UserRecord): Promise<number> {
      return (await listValid(user)).length
    },

    /** How many tokens of all people are valid. It reads them page by page. */
    async countAll (signal: AbortSignal): Promise<number> {
      const registry_id = await readRegistry(store)
      let count = 0
      for await (const batch of scan(records, USER_HOLDERS, { key: 'holder' })) {
        signal.throwIfAborted()
        const owners = new Map((await users.getMany('id', batch.map(({ user_id }) => user_id))).map((user) => [user.id, user]))
        count += batch.filter((document) => named.findValid(document, { user_id: owners.get(document.user_id) ?? null, registry_id }) !== undefined).length
      }
      return count
    }
  }
}

export type PersonalTokenService = ReturnType<typeof createPersonalTokens>
