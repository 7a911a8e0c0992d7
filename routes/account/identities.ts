import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { IdentityError } from '../../lib/errors.ts'
import { pageHeaders } from '../../lib/pages/headers.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import { toTurn } from '../../lib/roles.ts'
import { UpstreamError } from '../../lib/upstreams/failure.ts'
import type { UpstreamService } from '../../lib/upstreams/index.ts'
import { findServer, toRedirectUri } from '../../lib/upstreams/kinds.ts'
import { RestrictedError } from '../../lib/restricted.ts'
import { WayError } from '../../lib/ways/way-error.ts'
import { LIMITS } from '../../schemas/common.ts'
import type { Identity } from '../../schemas/identity.ts'
import { type AccountMount, type Visit, type Visits, createSignInCookie } from '../../plugins/account.ts'
import { createPageProof } from '../../plugins/page-proof.ts'
import { FINISHES, PageError, describeLimit } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { toPageError } from '../../plugins/upstream-errors.ts'
import { createFactorParts, toActor } from './factor-parts.ts'
import { createPages, describeProof, toDone } from './page.ts'
import { readParameter } from '../../plugins/parameters.ts'

/** The page that the answer of a provider leads to. */
const LINKED = '/identities/linked'

const METHODS: Message = ({ account }) => account.sections.methods

/** The upstreams whose identities may join an account that exists. */
export const listLinkable = (upstreams: Pick<UpstreamService, 'list' | 'require'>): ReturnType<UpstreamService['list']> =>
  upstreams.list().filter(({ id }) => upstreams.require(id).link !== 'never')

/** What people call the provider of an identity. */
export const nameProvider = ({ name, upstream }: Pick<Identity, 'name' | 'upstream'>): string => name ?? upstream

function describeRefusal (error: IdentityError): Message | undefined {
  if (error.code === 'ErrLimit') return describeLimit(error)
  if (error instanceof WayError && error.refusal === 'last') return ({ account }) => account.lastIdentity
  return describeProof(error)
}

/** Why an identity was not linked. Undefined for any other error. */
function describeLinkRefusal (error: unknown): Message | undefined {
  if (error instanceof RestrictedError) return ({ account }) => account.restricted
  return error instanceof WayError && error.refusal === 'most' ? ({ account }) => account.mostFactors : undefined
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
  const home = () => `${getHome()}/methods`
  const fail = (error: unknown) => toPageError(error, home(), METHODS)

  const linkable = listLinkable(upstreams)

  /** @throws UpstreamError `off` */
  function requireLinkable (id: string): { id: string, name: string } {
    const found = linkable.find((one) => one.id === id)
    if (found === undefined) throw new UpstreamError('off')
    return found
  }

  async function findOwn ({ user: { user_id } }: Visit, request: FastifyRequest): Promise<Identity> {
    const id = readId(request)
    const found = (await heldIdentities.list(user_id)).find((one) => one.identity_id === id)
    if (found === undefined) throw new PageError('ErrNotFound', 'id: no such identity', ({ account }) => account.enrolmentOver, [{ to: home(), text: METHODS }])
    return found
  }

  /** The upstream that a page is about. @throws PageError */
  function findAsked (request: FastifyRequest) {
    try {
      return requireLinkable(String(readParameter(request, 'upstream')).slice(0, LIMITS.id))
    } catch (error) {
      throw fail(error)
    }
  }

  add('/identities/add', 'account-identity-add', {
    section: 'methods',
    sensitive: true,
    asksProof: true,
    formTo: linkable.map(({ id }) => findServer(upstreams.require(id))),
    show (_visit, request) {
      const { id, name } = findAsked(request)
      return { id, name }
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
    const visit = await visits.open(request, reply, { section: 'methods', sensitive: true })
    if (visit === null) return reply
    const { server, session, user } = visit
    const secret = createSignInCookie(server.issuer).find(request)
    const found = secret === undefined ? null : await upstreams.found.takeLink(secret, session.uid, { user_id: user.user_id, epoch: session.user_epoch })
    if (found === null) return reply.redirect(home(), 303)
    try {
      const { id } = requireLinkable(found.upstream)
      await upstreams.identities.linkOwn({ upstream: upstreams.require(id), claimed: found.claimed }, toActor(visit))
    } catch (error) {
      const text = describeLinkRefusal(error)
      throw text === undefined || !(error instanceof Error) ? fail(error) : new PageError('ErrPerm', error.message, text, [{ to: home(), text: METHODS }])
    }
    return reply.redirect(toDone(getHome(), 'methods', 'identity'), 303)
  })

  add('/identities/remove', 'account-identity-remove', {
    section: 'methods',
    sensitive: true,
    asksProof: true,
    async show (visit, request) {
      const found = await findOwn(visit, request)
      return { id: found.identity_id, name: nameProvider(found) }
    },
    async submit (visit, request, reply) {
      const { identity_id: id } = await findOwn(visit, request)
      const { proofs, confirm } = await proof.require(request, visit)
      const { epoch } = await accounts.unlinkIdentity({ ...toActor(visit), confirm }, id, { isEnd: readField(request, 'end_sessions') !== '' })
      await signInAgain(request, reply, visit, epoch, proofs)
      return 'identity-removed'
    },
    describeRefusal
  })
}
