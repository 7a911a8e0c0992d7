import type { FastifyInstance, FastifyReply } from 'fastify'
import { countCharacters } from '../../lib/checks.ts'
import { IdentityError } from '../../lib/errors.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { createBrowserCookies } from '../../plugins/known-browsers.ts'
import { describeLimit, describePassword, sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { readDone } from './done.ts'

const schema = { hide: true }

/** Why a change of the password was refused, in the reader's language. */
function describeRefusal (error: IdentityError, min: number): Message {
  if (error.code === 'ErrLimit') return describeLimit(error)
  return describePassword(error, min) ?? (({ account }) => error.message.startsWith('current_password:') ? account.wrongCurrent : account.refused)
}

/** The person's name and password. */
export function profilePages (app: FastifyInstance, { getHome, getIssuer, limits, limitWrites, limitPasswords, passwordMin, look }: AccountMount, visits: Visits): void {
  const { users, knownBrowsers } = app.identity
  const browsers = createBrowserCookies(knownBrowsers, getIssuer)
  const page = { look }

  app.get('/', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'profile' })
    if (visit === null) return reply
    const { view, user } = visit
    return await sendPage(reply, 'account-profile', { ...view, ...readDone(request), name: user.name, created_at: user.created_at }, page)
  })

  app.post('/', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'profile' })
    if (visit === null) return reply
    const { actor, user } = visit
    const name = readField(request, 'name').trim()
    await limitWrites(user.user_id)
    if (countCharacters(name) > LIMITS.name) throw new IdentityError('ErrParam', `name: must have at most ${LIMITS.name} characters`)
    await users.patchOwn(user.user_id, { data: { name } }, actor)
    return reply.redirect(`${getHome()}?done=name`, 303)
  })

  const showPassword = async (reply: FastifyReply, { view }: Visit, error?: Message) =>
    await sendPage(reply, 'account-password', { ...view, ...readDone(reply.request), ...(error !== undefined && { error }) }, page)

  app.get('/password', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'password', sensitive: true })
    return visit === null ? reply : await showPassword(reply, visit)
  })

  app.post('/password', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'password', sensitive: true })
    if (visit === null) return reply
    const { actor, server, user: { user_id, account } } = visit
    const [current_password, password] = [readField(request, 'current_password'), readField(request, 'password')]
    try {
      await limits.guess(request, account, browsers.find(request, account))
      await limitPasswords(user_id)
      await limitWrites(user_id)
      if ([current_password, password].some((text) => countCharacters(text) > LIMITS.password)) throw new IdentityError('ErrParam', 'current_password: is wrong')
      const { epoch } = await users.patchOwn(user_id, { data: { password, current_password } }, actor)
      // The change has ended all sign-ins, this one too. The person has just typed their password, so this browser is signed in again.
      await visits.signIn(request, reply, server, { accountId: user_id, user_epoch: epoch })
      browsers.remember(request, reply, account, { user_id, epoch })
    } catch (error) {
      if (!(error instanceof IdentityError) || !(error.code === 'ErrParam' || error.code === 'ErrLimit')) throw error
      return await showPassword(reply.code(error.statusCode).headers(error.headers), visit, describeRefusal(error, passwordMin))
    }
    return reply.redirect(`${getHome()}/password?done=password`, 303)
  })
}
