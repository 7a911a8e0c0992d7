import type { FastifyInstance } from 'fastify'
import { FactorsDataSchema } from '../schemas/factor.ts'
import { UserMailsDataSchema, UserSessionsDataSchema } from '../schemas/support.ts'
import { UnlockedDataSchema } from '../schemas/unlock.ts'
import { createRows, data } from './rows.ts'
import type { RouteSettings } from './settings.ts'

/** What administrators, managers and support staff see and do when somebody cannot sign in (docs/support.md). */
export async function userHelpRoutes (app: FastifyInstance, { writeLimit }: Pick<RouteSettings, 'writeLimit'>): Promise<void> {
  const { users, userSessions, heldFactors, heldMails } = app.identity
  const add = createRows(app, 'user', { writeLimit })

  add('unlockUser', 'POST /user/:userId/unlock', 'Unlock the password and the authenticator apps of a user', {
    description: 'It ends pauses and locks after too many wrong attempts, and on this machine the limits of a minute for the account. Support staff ' +
      'do so three times a day for one account, and the user gets an email.',
    answer: data(UnlockedDataSchema, 'What was locked and is unlocked now, what was not locked, and until when another machine may still refuse attempts.'),
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ params: { userId }, actor }) => users.unlock(userId, actor)
  })

  add('listSessionsOfUser', 'GET /user/:userId/sessions', 'List where a user is signed in', {
    answer: data(UserSessionsDataSchema, 'The browsers, and the sessions of apps.'),
    errors: ['ErrNotFound'],
    isRecorded: true,
    run: ({ params: { userId }, actor }) => userSessions.list(userId, actor)
  })

  add('endSessionsOfUser', 'DELETE /user/:userId/sessions', 'End all sessions of a user', {
    description: "Ends the user's sessions in browsers and apps, and every other token that acts for the user, those of the user's own clients included.",
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ params: { userId }, actor }) => userSessions.endAll(userId, actor)
  })

  add('endSessionOfUser', 'DELETE /user/:userId/sessions/:sessionId', 'End one session of a user', {
    description: 'A session of an app, or that of a browser, which ends the sessions of apps that belong to it too.',
    errors: ['ErrNotFound'],
    hasBody: false,
    run: ({ params: { userId, sessionId }, actor }) => userSessions.endOne(userId, sessionId, actor)
  })

  add('listFactorsOfUser', 'GET /user/:userId/factors', 'List the methods of two-factor authentication of a user', {
    answer: data(FactorsDataSchema, 'The factors, and the number of backup codes that are left.'),
    errors: ['ErrNotFound'],
    isRecorded: true,
    run: ({ params: { userId }, actor }) => heldFactors.listOf(userId, actor)
  })

  add('listMailsOfUser', 'GET /user/:userId/mails', 'List the emails to a user', {
    description: 'What the service has sent, what waits and what failed, without texts, links and addresses.',
    answer: data(UserMailsDataSchema, 'The emails, the newest first.'),
    errors: ['ErrNotFound'],
    isRecorded: true,
    run: async ({ params: { userId }, actor }) => ({ mails: await heldMails.listOf(userId, actor) })
  })
}
