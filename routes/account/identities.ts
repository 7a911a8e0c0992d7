import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { IdentityError } from '../../lib/errors.ts'
import { pageHeaders } from '../../lib/pages/headers.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import { toTurn } from '../../lib/roles.ts'
import { UpstreamError } from '../../lib/upstreams/failure.ts'
import { findServer } from '../../lib/upstreams/kinds.ts'
import { RestrictedError } from '../../lib/restricted.ts'
import { WayError } from '../../lib/ways/way-error.ts'
import { LIMITS } from '../../schemas/common.ts'
import type { Identity } from '../../schemas/identity.ts'
import { type AccountMount, type Visit, type Visits, createSignInCookie } from '../../plugins/account.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { FINISHES, PageError, describeLimit } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { toPageError } from '../../plugins/upstream-errors.ts'
import { toRedirectUri } from '../../plugins/upstream-forms.ts'
import { createFactorParts, toActor } from './factor-parts.ts'
import { createPages, describeProof } from './page.ts'

/** The page that the answer of a provider leads to. */
const LINKED = '/identities/linked'

const WAYS: Message = ({ account }) => account.sections.identities

function describeRefusal (error: IdentityError): Message | undefined {
  if (error.code === 'ErrLimit') return describeLimit(error)
  if (error instanceof WayError && error.refusal === 'last') return ({ account }) => account.lastIdentity
  return describeProof(error)
}

/**
 * The identities of a person at other providers. To link one begins with a form of a fresh session, because any site may open a link; the
 * answer counts in the same session and the same browser only.
 */
export function identityPages (app: FastifyInstance, mount: AccountMount, visits: Visits): void {
  const { getHome, getIssuer, look } = mount
  const { accounts, heldIdentities, upstreams } = app.identity
  if (upstreams === undefined) return
  const proof = createPageProof(app, mount)
  const add = createPages(app, mount, visits)
  const { signInAgain, readId } = createFactorParts(app, mount, visits)
  const home = () => `${getHome()}/identities`
  const fail = (error: unknown) => toPageError(error, home(), WAYS)

  /** The upstreams whose identities may join an account that exists. */
  const linkable = upstreams.list().filter(({ id }) => upstreams.require(id).link !== 'never')

  /** @throws UpstreamError `off` */
  function requireLinkable (id: string) {
    if (!linkable.some((one) => one.id === id)) throw new UpstreamError('off')
    return upstreams!.require(id)
  }

  const toName = ({ name, upstream }: Pick<Identity, 'name' | 'upstream'>): string => name ?? upstream

  async function findOwn ({ user: { user_id } }: Visit, request: FastifyRequest): Promise<Identity> {
    const id = readId(request)
    const found = (await heldIdentities.list(user_id)).find((one) => one.identity_id === id)
    if (found === undefined) throw new PageError('ErrNotFound', 'id: no such identity', ({ account }) => account.enrolmentOver, [{ to: home(), text: WAYS }])
    return found
  }

  add('/identities', 'account-identities', {
    section: 'identities',
    sensitive: true,
    changesWays: true,
    async show ({ user: { user_id } }) {
      return {
        identities: (await heldIdentities.list(user_id)).map(({ identity_id: id, created_at: at, last_used_at, ...identity }) => (
          { id, at, name: toName(identity), ...(last_used_at !== undefined && { last_used_at }), ...(identity.name === undefined && { off: true }) })),
        upstreams: linkable
      }
    }
  })

  /** The upstream that a page is about. @throws PageError */
  function findAsked ({ query }: FastifyRequest) {
    const { upstream } = query as { upstream?: unknown }
    try {
      return requireLinkable(String(upstream).slice(0, LIMITS.id))
    } catch (error) {
      throw fail(error)
    }
  }

  add('/identities/add', 'account-identity-add', {
    section: 'identities',
    path: 'identities',
    sensitive: true,
    asksProof: true,
    formTo: linkable.map(({ id }) => findServer(upstreams.require(id))),
    show (_visit, request) {
      const { id } = findAsked(request)
      return { id, name: linkable.find((one) => one.id === id)!.name }
    },
    async submit (visit, request, reply) {
      const { server, session, user, actor } = visit
      const { id } = findAsked(request)
      // An identity is a way in for good: it takes the same proof as a factor.
      await proof.require(request, visit)
      try {
        const { secret } = createSignInCookie(server.issuer).begin(request, reply)
        const intent = { kind: 'link' as const, place: { session: session.uid }, user_id: user.user_id, epoch: session.user_epoch }
        const to = await upstreams.begin(id, { secret, redirectUri: toRedirectUri(getIssuer(), id), intent, turn: toTurn(actor) })
        return reply.headers(pageHeaders({ look })).redirect(to, 303)
      } catch (error) {
        throw fail(error)
      }
    },
    describeRefusal
  })

  app.get(LINKED, FINISHES, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'identities', sensitive: true })
    if (visit === null) return reply
    const { server, session, user } = visit
    const secret = createSignInCookie(server.issuer).find(request)
    const found = secret === undefined ? null : await upstreams.found.takeLink(secret, session.uid, { user_id: user.user_id, epoch: session.user_epoch })
    if (found === null) return reply.redirect(home(), 303)
    try {
      await upstreams.identities.linkOwn({ upstream: requireLinkable(found.upstream), claimed: found.claimed }, toActor(visit))
    } catch (error) {
      if (error instanceof RestrictedError) throw new PageError('ErrPerm', error.message, ({ account }) => account.restricted, [{ to: home(), text: WAYS }])
      if (error instanceof WayError && error.refusal === 'most') throw new PageError('ErrPerm', error.message, ({ account }) => account.mostFactors, [{ to: home(), text: WAYS }])
      throw fail(error)
    }
    return reply.redirect(`${home()}?done=identity`, 303)
  })

  add('/identities/remove', 'account-identity-remove', {
    section: 'identities',
    sensitive: true,
    asksProof: true,
    async show (visit, request) {
      const found = await findOwn(visit, request)
      return { id: found.identity_id, name: toName(found) }
    },
    async submit (visit, request, reply) {
      const { identity_id: id } = await findOwn(visit, request)
      const { proofs, confirm } = await proof.require(request, visit)
      const { epoch } = await accounts.unlinkIdentity({ ...toActor(visit), confirm }, id, { isEnd: readField(request, 'end_sessions') !== '' })
      await signInAgain(request, reply, visit, epoch, proofs)
      return reply.redirect(`${home()}?done=identity-removed`, 303)
    },
    describeRefusal
  })
}
