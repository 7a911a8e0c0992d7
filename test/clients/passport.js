// passport-openidconnect, which knows no PKCE, in an Express app.
import express from 'express'
import session from 'express-session'
import passport from 'passport'
import { Strategy } from 'passport-openidconnect'

const { ISSUER, CLIENT_ID, CLIENT_SECRET, ORIGIN } = process.env
const endpoint = `${ISSUER}/api/v1/auth`

passport.use(new Strategy({
  issuer: ISSUER,
  authorizationURL: `${endpoint}/authorize`,
  tokenURL: `${endpoint}/token`,
  userInfoURL: `${endpoint}/userinfo`,
  clientID: CLIENT_ID,
  clientSecret: CLIENT_SECRET,
  callbackURL: `${ORIGIN}/callback`,
  scope: ['profile', 'email']
}, (_issuer, profile, done) => done(null, profile)))
passport.serializeUser((user, done) => done(null, user))
passport.deserializeUser((user, done) => done(null, user))

const app = express()
app.use(session({ secret: 'signs the cookie of this test', resave: false, saveUninitialized: false }), passport.session())
app.get('/login', passport.authenticate('openidconnect'))
app.get('/callback', passport.authenticate('openidconnect'), (_request, response) => response.redirect('/result'))
app.get('/result', (request, response) => response.json({ profile: request.user }))
app.listen(new URL(ORIGIN).port, '127.0.0.1')
