import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ADMIN_SCOPES } from '../../lib/api-scopes.ts'
import { toTimestamp } from '../../lib/clock.ts'
import { IdentityError } from '../../lib/errors.ts'
import { describeScopes } from '../../lib/oidc/policy.ts'
import type { Pages } from '../../lib/pages/contract.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import type { PersonalTokenService } from '../../lib/personal-tokens/index.ts'
import { findByUri, readRegistry } from '../../lib/resources/registry.ts'
import { hasSpecialRole } from '../../lib/roles.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { describeLimit, sendPage } from '../../plugins/pages.ts'
import { readField, readFields } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { createPages, describeProof } from './page.ts'

const DAY = 24 * 60 * 60_000

/** Characters of a day, as a field of a form has it. */
const DAY_LENGTH = 10

/** The place of a token for this service. */
const HERE = 'here'

/** Why a token was refused. Undefined for an error that the reader has not caused. */
function describeRefusal (error: IdentityError): { error: Message, wrong?: 'name' | 'expires' } | undefined {
  const { message, code } = error
  if (message.startsWith('name:')) return { error: ({ account }) => account.wrongSecretName, wrong: 'name' }
  if (message.startsWith('expiresAt:')) return { error: ({ account }) => account.wrongTokenDay, wrong: 'expires' }
  if (message.startsWith('tokens:')) return { error: ({ account }) => account.mostTokens }
  if (message.startsWith('scopes') || message.startsWith('resource:')) return { error: ({ account }) => account.tokenPlaceGone }
  if (code === 'ErrPerm') return { error: ({ account }) => account.mayNotMake }
  const why = code === 'ErrLimit' ? describeLimit(error) : describeProof(error)
  return why && { error: why }
}

/** What the form of a new token says. */
function readForm (request: FastifyRequest): NonNullable<Pages['account-token-new']['typed']> {
  const place = readField(request, 'place').slice(0, LIMITS.uri)
  return {
    name: readField(request, 'name').slice(0, LIMITS.name),
    expires: readField(request, 'expires').slice(0, DAY_LENGTH),
    place,
    scopes: readFields(request).getAll(`scope-${place}`).slice(0, LIMITS.items).map((scope) => scope.slice(0, LIMITS.scope))
  }
}

/** The personal access tokens of the person. */
export function tokenPages (app: FastifyInstance, mount: AccountMount, visits: Visits, personalTokens: PersonalTokenService): void {
  const { getHome, limitWrites, look, now } = mount
  const { store, roles } = app.identity
  const proof = createPageProof(app, mount)
  const add = createPages(app, mount, visits)
  const typed = new WeakMap<FastifyRequest, Pages['account-token-new']['typed']>()

  async function list ({ user }: Visit): Promise<Pick<Pages['account-tokens'], 'tokens' | 'may'>> {
    const [held, registry] = await Promise.all([personalTokens.list(user.user_id), readRegistry(store)])
    const toPlace = (uri: string | undefined) => uri === undefined ? undefined : findByUri(registry, uri)?.[1].name ?? uri
    return {
      may: !personalTokens.mayMake(user) ? 'none' : held.length >= personalTokens.most ? 'full' : 'all',
      tokens: held.map(({ id, name, last4, scopes, resource, createdAt, expiresAt, lastUsedAt, lastUsedFrom }) => ({
        id,
        name,
        last4,
        scopes: describeScopes(scopes, registry, toPlace(resource)),
        resource: toPlace(resource),
        created_at: createdAt,
        expires_at: expiresAt,
        last_used_at: lastUsedAt,
        last_used_from: lastUsedFrom
      }))
    }
  }

  /** Where a token may be for, and what it may do there. Scopes that take a role are offered to people with one of the special roles. */
  async function listPlaces ({ user }: Visit): Promise<Pick<Pages['account-token-new'], 'places' | 'last'>> {
    const [{ maxDays, scopes, resources }, registry] = await Promise.all([personalTokens.offer(), readRegistry(store)])
    const isStaff = hasSpecialRole(roles, user.roles)
    const here = { place: HERE, scopes: describeScopes(scopes.filter((scope) => isStaff || !ADMIN_SCOPES.has(scope)), registry) }
    const others = resources.map(({ uri, name, scopes: offered }) => ({ place: uri, name, scopes: describeScopes(offered, registry, name) }))
    // The day before, since a token ends at midnight of the day after its last one.
    return { places: [here, ...others], last: toTimestamp(now() + (maxDays - 1) * DAY) }
  }

  add('/tokens', 'account-tokens', {
    section: 'tokens',
    sensitive: true,
    show: list,
    async submit ({ view, user: { user_id } }, request, reply) {
      const id = readField(request, 'token').slice(0, LIMITS.id)
      const path = `${getHome()}/tokens`
      if (readField(request, 'confirm') === '') {
        const found = (await personalTokens.list(user_id)).find((token) => token.id === id)
        if (found === undefined) return reply.redirect(path, 303)
        return await sendPage(reply, 'account-confirm', {
          ...view,
          question: ({ account }, name) => account.removeTokenQuestion({ name }),
          subject: found.name,
          warning: ({ account }) => account.removeTokenWarning,
          submit: ({ account }) => account.remove,
          action: path,
          back: path,
          fields: { token: id }
        }, { look })
      }
      await limitWrites(user_id)
      await personalTokens.remove(user_id, id)
      return 'token-removed'
    }
  })

  add('/tokens/new', 'account-token-new', {
    section: 'tokens',
    path: 'tokens/new',
    sensitive: true,
    asksProof: true,
    async show (visit, request) {
      return { ...await listPlaces(visit), typed: typed.get(request) }
    },
    async submit (visit, request, reply: FastifyReply) {
      const form = readForm(request)
      const { name, expires, place, scopes } = form
      const data = { name, scopes, ...(place !== HERE && { resource: place }), expiresAt: `${expires}T23:59:59.999Z` }
      typed.set(request, form)
      const { password, proveMore } = await proof.read(request, visit)
      const { token: added } = await personalTokens.add(visit.actor, { data }, { password, proveMore }).catch((error: unknown) => {
        typed.set(request, { ...form, wrong: error instanceof IdentityError ? describeRefusal(error)?.wrong : undefined })
        throw error
      })
      return await sendPage(reply, 'account-tokens', { ...visit.view, ...await list(visit), added }, { look })
    },
    describeRefusal (error) {
      return describeRefusal(error)?.error
    }
  })
}
