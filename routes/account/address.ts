import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { countCharacters } from '../../lib/checks.ts'
import { IdentityError } from '../../lib/errors.ts'
import type { Message } from '../../lib/pages/texts/en.ts'
import { findMailbox } from '../../lib/users/addresses.ts'
import type { AccountMount, Visit, Visits } from '../../plugins/account.ts'
import { createBrowserCookies } from '../../plugins/known-browsers.ts'
import { chooseMailLanguage } from '../../plugins/mail-language.ts'
import { describeLimit, sendPage } from '../../plugins/pages.ts'
import { readField } from '../../plugins/sign-in-forms.ts'
import { LIMITS } from '../../schemas/common.ts'
import { readDone } from './done.ts'

const schema = { hide: true }

/** Why a form was refused, in the reader's language. Undefined for an error that the reader has not caused. */
function describeRefusal (error: unknown): Message | undefined {
  if (!(error instanceof IdentityError)) return undefined
  const { code, message } = error
  if (code === 'ErrLimit') return describeLimit(error)
  if (code === 'ErrPerm') return ({ account }) => account.lastAdmin
  if (code !== 'ErrParam') return undefined
  return ({ account }) => message.startsWith('current_password:') ? account.wrongCurrent : account.wrongAddress
}

/** The pages for the person's address, if the service sends mail, and for deleting the account, if people may delete theirs. */
export function addressPages (app: FastifyInstance, { getHome, getIssuer, limits, limitWrites, look }: AccountMount, visits: Visits): void {
  const { users, accounts, clients, knownBrowsers } = app.identity
  const browsers = createBrowserCookies(knownBrowsers, getIssuer)
  const page = { look }

  /** @throws ErrParam unless the form has the current password, ErrLimit */
  async function confirm (request: FastifyRequest, { actor, user: { user_id, account } }: Visit): Promise<void> {
    const password = readField(request, 'current_password')
    await limits.guess(request, account, browsers.find(request, account))
    await limitWrites(user_id)
    if (countCharacters(password) > LIMITS.password) throw new IdentityError('ErrParam', 'current_password: is wrong')
    await users.confirmPassword(actor, password)
  }

  async function showAddress (reply: FastifyReply, { view, user }: Visit, more: { error?: Message, typed?: string } = {}): Promise<FastifyReply> {
    const mailbox = findMailbox(user)
    const isVerified = user.email_verified_at !== undefined
    return await sendPage(reply, 'account-email', {
      ...view,
      ...readDone(reply.request),
      ...(mailbox !== undefined && (isVerified ? { email: mailbox } : { unverified: mailbox })),
      ...more
    }, page)
  }

  app.get('/email', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'email', sensitive: true })
    return visit === null ? reply : await showAddress(reply, visit)
  })

  app.post('/email', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'email', sensitive: true })
    if (visit === null) return reply
    const { user: { user_id } } = visit
    const email = readField(request, 'email').trim().slice(0, 2 * LIMITS.account)
    const isVerification = readField(request, 'verify') !== ''
    try {
      if (isVerification) {
        await limitWrites(user_id)
        await accounts.sendVerification(user_id, chooseMailLanguage(request))
      } else {
        await confirm(request, visit)
        await accounts.changeAddress(user_id, email, chooseMailLanguage(request))
      }
    } catch (thrown) {
      const error = describeRefusal(thrown)
      if (error === undefined) throw thrown
      const { statusCode, headers } = thrown as IdentityError
      return await showAddress(reply.code(statusCode).headers(headers), visit, { error, typed: email })
    }
    return reply.redirect(`${getHome()}/email?done=${isVerification ? 'verification' : 'address'}`, 303)
  })

  const countClients = async ({ user: { user_id }, actor }: Visit) => await clients.count(user_id, { ...actor, user_id, isAdmin: false })

  app.get('/delete', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'delete', sensitive: true })
    return visit === null ? reply : await sendPage(reply, 'account-delete', { ...visit.view, apps: await countClients(visit) }, page)
  })

  app.post('/delete', { schema }, async (request, reply) => {
    const visit = await visits.open(request, reply, { section: 'delete', sensitive: true })
    if (visit === null) return reply
    try {
      await confirm(request, visit)
      await accounts.deleteOwn(visit.user.user_id)
    } catch (thrown) {
      const error = describeRefusal(thrown)
      if (error === undefined) throw thrown
      const { statusCode, headers } = thrown as IdentityError
      return await sendPage(reply.code(statusCode).headers(headers), 'account-delete', { ...visit.view, apps: await countClients(visit), error }, page)
    }
    await visits.signOut(request, reply, visit.server)
    return await sendPage(reply, 'account-deleted', {}, page)
  })
}
